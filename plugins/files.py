"""Things that a command names by file and name: ``path/to/file.py:Name``.

The file runs in this process and in every process of ours that needs it, so it is as trusted as who
names it. It may import the modules that lie beside it.
"""

import ast
import contextlib
import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Final

from splitbrain.contracts.errors import UsageError, in_one_line

MARK: Final = ".py:"
#: Names of such modules go on with the path in hexadecimal digits, so that a process which is sent
#: an object of a class of that file finds the class.
_PREFIX: Final = "splitbrain_file_"
#: Folders in which modules are found for such a file's sake alone.
_FOLDERS: Final[set[str]] = set()


def is_file(name: str) -> bool:
    """Return whether a name means something of a file."""
    return MARK in name


def absolute(name: str) -> str:
    """Return the same name, fit for a process that runs in another folder."""
    path, _, attribute = name.rpartition(":")
    # Without steps up: a suite and a command line may name one file from different folders.
    return f"{os.path.abspath(path)}:{attribute}"  # noqa: PTH100 - Path keeps the steps up


def is_of_file(module: str, path: str) -> bool:
    """Return whether a module is such a file, or a neighbour of one."""
    return module.startswith(_PREFIX) or str(Path(path).parent) in _FOLDERS


def hides_module(name: str) -> bool:
    """Return whether a file of this name would stand in the place of a module that is installed."""
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # loaded, and nobody knows from where
        return True
    if spec is None:
        return False
    return spec.origin is None or str(Path(spec.origin).parent) not in _FOLDERS


def digest_of(name: str) -> str:
    """Return 16 hexadecimal digits that stand for a file's text, and its imported neighbours'.

    Args:
        name: ``path/to/file.py:Name``, of a file that has run in this process.
    """
    first = Path(name.rpartition(":")[0]).absolute()
    texts: dict[str, bytes] = {}
    waiting = [first]
    while waiting:
        path = waiting.pop()
        key = path.relative_to(first.parent).as_posix()
        if key not in texts:
            texts[key] = path.read_bytes()
            waiting += _neighbours(texts[key], first.parent)
    whole = hashlib.sha256()
    for key in sorted(texts):
        whole.update(f"{key} {len(texts[key])}\n".encode() + texts[key])
    return whole.hexdigest()[:16]


def _neighbours(text: bytes, folder: Path) -> list[Path]:
    """Return the modules of a folder that a module's text imports, and all those of packages."""
    found: list[Path] = []
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        # A neighbour that nobody has imported yet may be no Python.
        return found
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Import):
            modules = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            modules = [statement.module or ""]
        else:
            continue
        for first in {module.partition(".")[0] for module in modules} - {""}:
            module, package = folder / f"{first}.py", folder / first
            found += [module] if module.is_file() else package.rglob("*.py")
    return found


def find_modules_of_files() -> None:
    """Have this process find the modules of files, as it does once it has loaded one itself."""
    if _FileFinder not in sys.meta_path:
        sys.meta_path.append(_FileFinder)


def found_in_file(name: str, noun: str, base: type, how: str) -> object:
    """Run the file and return what it has under the name.

    Args:
        name: ``path/to/file.py:Name``.
        noun: what it should be, for sentences: "model".
        base: what such things derive from, for a list of those that the file has.
        how: a clause that says where to read on.

    Raises:
        UsageError: there is no such file, it cannot be run, or has no such name.
    """
    text, _, attribute = name.rpartition(":")
    path = Path(text)
    if not path.is_file():
        raise UsageError(f"there is no file {path}", f"Name a Python file that holds a {noun}")
    find_modules_of_files()
    try:
        # Standard output is for the results alone.
        with contextlib.redirect_stdout(sys.stderr):
            module = importlib.import_module(_PREFIX + str(path.absolute()).encode().hex())
    # Anything that a user's file raises, SystemExit included, is the file's fault.
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"{path} cannot be run: {in_one_line(error)}", "Repair the file; it is Python"
        ) from error
    found = getattr(module, attribute, None) if attribute else None
    if found is None:
        problem = f"{path} holds no {attribute or f'nameless {noun}'}"
        raise UsageError(problem, _those_of(module, noun, base, how))
    return found


def _those_of(module: ModuleType, noun: str, base: type, how: str) -> str:
    names = [
        name
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, base)
        and value.__module__ == module.__name__
    ]
    return f"Its {noun}s are: {', '.join(names)}" if names else f"It holds no {noun} at all; {how}"


class _FileFinder:
    """Finds modules by the path in their name."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to load the module; None for all others."""
        del path, target
        if not name.startswith(_PREFIX):
            return None
        file = Path(bytes.fromhex(name.removeprefix(_PREFIX)).decode())
        # After everything that is installed, so that no file beside it hides a package.
        if (folder := str(file.parent)) not in sys.path:
            sys.path.append(folder)
            _FOLDERS.add(folder)
        return importlib.util.spec_from_file_location(
            name, file, loader=_FileLoader(name, str(file))
        )


class _FileLoader(SourceFileLoader):
    """Leaves nothing beside the user's file, neither for it nor for its neighbours."""

    def exec_module(self, module: ModuleType) -> None:
        before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        try:
            super().exec_module(module)
        finally:
            sys.dont_write_bytecode = before
