"""A lake's store whose process dies at a chosen operation, with the file torn or just written.

From then on nothing works any more, as for a process that was killed: whatever cleaning up code
does after the failure cannot reach the lake.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from splitbrain.spark_analysis.lake.store import LocalStore, StoredFile

#: Where in the operation it dies: before anything, with half of the bytes under the final name, or
#: after it was done and before the writer heard of it.
Moment = Literal["before", "torn", "after"]
MOMENTS: tuple[Moment, ...] = ("before", "torn", "after")


class Killed(BaseException):
    """The process is no more."""


class FailingStore:
    """A local store that fails at its operation of a number, from 0.

    Args:
        root: the lake.
        fail_at: number of the operation; None: never.
        moment: where in it.
        before_write: called with the name before each small file is written.
    """

    def __init__(
        self,
        root: Path,
        fail_at: int | None = None,
        moment: Moment = "before",
        before_write: Callable[[str], object] = lambda _name: None,
    ) -> None:
        self._store = LocalStore(root)
        self._root = root
        self._fail_at = fail_at
        self._moment = moment
        self._before_write = before_write
        #: Operations so far.
        self.count = 0
        self.is_dead = False

    @property
    def uri(self) -> str:
        return self._store.uri

    def files(self, folder: str) -> Iterator[StoredFile]:
        with self._operation(lambda: None):
            found = list(self._store.files(folder))
        yield from found

    def read_all(self, folder: str) -> dict[str, bytes]:
        with self._operation(lambda: None):
            return self._store.read_all(folder)

    def write(self, name: str, content: bytes) -> None:
        self._before_write(name)
        with self._operation(lambda: self._tear(name, content)):
            self._store.write(name, content)

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """Dies at its beginning or at its end, which count as two operations."""
        with self._operation(lambda: self._tear(name, b"PAR1")):
            context = self._store.writing(name)
            path = context.__enter__()
        yield path
        with self._operation(lambda: self._tear(name, path.read_bytes())):
            context.__exit__(None, None, None)

    @contextlib.contextmanager
    def reading(self, name: str) -> Iterator[Path]:
        with self._operation(lambda: None):
            pass
        with self._store.reading(name) as path:
            yield path

    def remove(self, name: str) -> None:
        with self._operation(lambda: None):
            self._store.remove(name)

    def _tear(self, name: str, content: bytes) -> None:
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content[: len(content) // 2])

    @contextlib.contextmanager
    def _operation(self, tear: Callable[[], None]) -> Iterator[None]:
        if self.is_dead:
            raise Killed
        number = self.count
        self.count += 1
        fails = number == self._fail_at
        if fails and self._moment != "after":
            self.is_dead = True
            if self._moment == "torn":
                tear()
            raise Killed
        yield
        if fails:
            self.is_dead = True
            raise Killed
