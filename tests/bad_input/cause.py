"""One way to be wrong, as data, and the place where it is tried."""

from collections.abc import Callable, Mapping
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


def causes(text: str, arranged: Mapping[str, Arrange] = {}) -> tuple[Cause, ...]:
    """Causes as text: ``name | what is wrong | command``, and the sentence below it, indented.

    Further columns: an exit code other than 64, and ``process`` for what is tried as one too. A
    long command may stand below them, behind ``$``. ``arranged`` goes by the names.
    """
    heads: list[list[str]] = []
    sentences: list[list[str]] = []
    for line in text.strip("\n").splitlines():
        if not line.startswith(" "):
            heads.append(line.split(" | "))
            sentences.append([])
        elif line.startswith("  $ "):
            heads[-1] += line.removeprefix("  $ ").split(" | ")
        else:
            sentences[-1].append(line.strip())
    assert arranged.keys() <= {name for name, *_ in heads}
    return tuple(
        Cause(
            name,
            wrong,
            command,
            " ".join(sentence),
            next((int(word) for word in more if word.isdecimal()), 64),
            arranged.get(name, nothing),
            "process" in more,
        )
        for (name, wrong, command, *more), sentence in zip(heads, sentences, strict=True)
    )


class Chapter(msgspec.Struct, frozen=True):
    """Causes of one sort."""

    title: str
    causes: tuple[Cause, ...]
