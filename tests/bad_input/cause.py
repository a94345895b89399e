"""One way to be wrong, as data, and the place where it is tried."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest


class Scene:
    """The working folder of one command line, its environment, and what must be undone after it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, undo: ExitStack) -> None:
        self.folder = folder
        self.monkeypatch = monkeypatch
        self.undo = undo

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path


Arrange = Callable[[Scene], object]
QUOTE = "'"


def nothing(scene: Scene) -> None:
    """The working folder is empty, and no engine answers."""


def file(name: str, content: str | bytes) -> Arrange:
    """One file lies in the working folder."""
    return lambda scene: scene.write(name, content)


class Cause(msgspec.Struct, frozen=True):
    """One way to be wrong."""

    #: In kebab-case; names the test.
    name: str
    #: The fault of the input, for the page.
    wrong: str
    #: The command line after ``splitbrain``, as a shell reads it.
    command: str
    #: The whole sentence; ``{folder}`` stands for the working folder.
    says: str
    code: int = 64
    #: Files that lie there, and the environment.
    arrange: Arrange = nothing
    #: Tried as a process of its own too.
    as_process: bool = False


def impossible(command: str, advice: str, *rows: tuple[str, str, str]) -> tuple[Cause, ...]:
    """Values that the last option of a command cannot have: name, what is wrong, value as said."""
    option = command.rpartition(" ")[2]
    return tuple(
        Cause(name, wrong, f"{command} {said.strip(QUOTE)}", f"{option} cannot be {said}. {advice}")
        for name, wrong, said in rows
    )


class Chapter(msgspec.Struct, frozen=True):
    """Causes of one sort."""

    title: str
    causes: tuple[Cause, ...]
