"""Store of a lake's files: the few operations that the protocol needs, and no more.

A file whose writing has ended is listed, and read whole by every later reader. Nothing is renamed,
replaced or locked, and a writer that dies may leave a torn file under its final name: object
stores, HDFS and local folders give that much. Names are relative to the lake, with ``/``, and are
never used twice.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from splitbrain.contracts.errors import UsageError
from splitbrain.spark_analysis.table_writer import sync

#: Characters that make a path a pattern to Spark.
_PATTERN_CHARACTERS: Final = frozenset("*?[]{}\\")


class StoredFile(NamedTuple):
    """File of a lake."""

    name: str
    size_bytes: int
    #: Wall clock of the store, seconds.
    modified_s: float


class Store(Protocol):
    """Files of one lake. Everything raises ``OSError`` where the store refuses."""

    @property
    def uri(self) -> str:
        """Lake's root, as Spark opens it."""
        ...

    def files(self, folder: str) -> Iterator[StoredFile]:
        """List all files below a folder, none where there is no such folder."""
        ...

    def read_all(self, folder: str) -> dict[str, bytes]:
        """Return name and content of each file directly in a folder; for small files."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Write a small file, durably when this returns."""
        ...

    def writing(self, name: str) -> contextlib.AbstractContextManager[Path]:
        """Yield a local path to write a large file to, durable when the block ends."""
        ...

    def reading(self, name: str) -> contextlib.AbstractContextManager[Path]:
        """Yield a local path where the file can be read within the block."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file; one that is gone is no error."""
        ...


class LocalStore:
    """Lake in a folder of this machine, or of a file system mounted on it."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    @property
    def uri(self) -> str:
        """Path with its scheme."""
        return f"file://{self._root}"

    def files(self, folder: str) -> Iterator[StoredFile]:
        """List all files below a folder."""
        for path, _, names in os.walk(self._root / folder):
            for name in sorted(names):
                file = Path(path) / name
                try:
                    status = file.stat()
                except FileNotFoundError:
                    continue  # removed by a cleaning meanwhile
                known = file.relative_to(self._root).as_posix()
                yield StoredFile(known, status.st_size, status.st_mtime)

    def read_all(self, folder: str) -> dict[str, bytes]:
        """Return name and content of each file in a folder."""
        found: dict[str, bytes] = {}
        try:
            with os.scandir(self._root / folder) as entries:
                names = sorted(entry.name for entry in entries if entry.is_file())
        except FileNotFoundError:
            return found
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                found[f"{folder}/{name}"] = (self._root / folder / name).read_bytes()
        return found

    def write(self, name: str, content: bytes) -> None:
        """Write and sync a file."""
        with self.writing(name) as path:
            path.write_bytes(content)

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """Yield the file's own path: a torn file counts for nothing."""
        path = self._root / name
        made = [folder for folder in path.parents if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        yield path
        sync(path)
        for folder in (path.parent, *(folder.parent for folder in made)):
            sync(folder)

    @contextlib.contextmanager
    def reading(self, name: str) -> Iterator[Path]:
        """Yield the file's own path."""
        yield self._root / name

    def remove(self, name: str) -> None:
        """Remove a file, and its folder if that is empty now."""
        path = self._root / name
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            path.parent.rmdir()


def local_root(uri: str) -> Path | None:
    """Return the folder that a URI or path names on this machine; None where it is elsewhere.

    Raises:
        UsageError: it is empty, or Spark would take it for a pattern.
    """
    if not uri.strip():
        raise UsageError("the lake has no name", "Write --lake FOLDER or --lake URI")
    if odd := sorted(_PATTERN_CHARACTERS & set(uri)):
        raise UsageError(
            f"the lake's name {uri!r} holds {odd[0]}, which Spark takes for a pattern",
            "Choose a name without any of *?[]{}\\",
        )
    scheme, colon, rest = uri.partition(":")
    if not (colon and scheme.isalnum() and "/" not in scheme):
        return Path(uri).expanduser()
    if scheme.lower() != "file":
        return None
    if rest.startswith("//") and not rest.startswith("///"):
        raise UsageError(
            f"the lake's name {uri!r} holds a host", "Write file:///FOLDER, or the folder alone"
        )
    return Path("/" + rest.lstrip("/"))
