"""Whatever is done, the simulated disk answers as the real one, with and without jobs."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from splitbrain.nodes.storage.disk import DiskFileSystem
from splitbrain.nodes.storage.filesystem import DataFile, FileSystem
from splitbrain.simulation.disk.file_system import MemoryFileSystem

names = st.sampled_from(("a", "b", "folder/c", "none/d"))
sizes = st.integers(0, 1500)
operations = st.one_of(
    st.tuples(st.just("open"), names, st.booleans()),
    st.tuples(st.just("write"), names, sizes, st.binary(max_size=600)),
    st.tuples(st.just("truncate"), names, sizes),
    st.tuples(st.just("read-at"), names, sizes, sizes),
    st.tuples(st.just("sync"), names),
    st.tuples(st.just("close"), names),
    st.tuples(st.just("read"), names),
    st.tuples(st.just("exists"), names),
    st.tuples(st.just("rename"), names, names),
    st.tuples(st.just("remove"), names),
    st.tuples(st.just("list"), st.sampled_from((".", "folder", "none"))),
    st.tuples(st.just("sync-folder"), st.sampled_from((".", "folder", "none"))),
    st.tuples(st.just("make-folder"), st.just("folder")),
    st.tuples(st.just("lock"), st.just(".lock")),
)


class User:
    """Does operations and tells what came of them; files stay open until closed by name."""

    def __init__(self, filesystem: FileSystem, root: Path) -> None:
        self.filesystem = filesystem
        self.root = root
        self.files: dict[str, DataFile] = {}

    def do(self, action: str, name: str, *arguments: object) -> object:
        """The answer, or the kind of error."""
        path = self.root / name
        file = self.files.get(name)
        calls: dict[str, Callable[..., object]] = {
            "open": lambda create: self._open(name, create=create),
            "write": lambda position, data: file and file.write_at(position, data),
            "truncate": lambda size: file and (file.truncate(size), file.size()),
            "read-at": lambda position, size: file and file.read_at(position, size),
            "sync": lambda: file and file.sync(),
            "close": lambda: file and file.close(),
            "read": lambda: self.filesystem.read(path),
            "exists": lambda: self.filesystem.exists(path),
            "rename": lambda new: self.filesystem.rename(path, self.root / str(new)),
            "remove": lambda: self.filesystem.remove(path),
            "list": lambda: self.filesystem.list(path),
            "sync-folder": lambda: self.filesystem.sync_folder(path),
            "make-folder": lambda: self.filesystem.make_folder(path),
            "lock": lambda: self.filesystem.lock(path).release(),
        }
        try:
            return calls[action](*arguments)
        except (OSError, ValueError) as error:
            return type(error)

    def close(self) -> None:
        for file in self.files.values():
            file.close()

    def _open(self, name: str, *, create: bool) -> int:
        file = self.filesystem.open(self.root / name, create=create)
        if name in self.files:
            self.files[name].close()
        self.files[name] = file
        return file.size()


@settings(max_examples=60)
@given(st.lists(operations, max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_the_same_answers_as_from_the_real_disk(
    script: list[tuple[str, ...]], begin: int, length: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        memory = MemoryFileSystem(journals=False)
        memory.make_folder(root)
        users = User(DiskFileSystem(), root), User(memory, root)
        for number, operation in enumerate(script):
            if number == begin:
                memory.begin_job()
            if number == begin + length and memory.job_in_flight:
                memory.end_job()
            wanted, found = (user.do(*operation) for user in users)
            assert found == wanted, operation
        for user in users:
            user.close()
