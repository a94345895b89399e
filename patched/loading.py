"""A finder that loads modules of ours with patches applied, for a process or for a copy of rooms.

Must never touch a file of the package: neither its source nor a ``.pyc``, in which an unpatched
process would find the bug.
"""

import importlib
import importlib.util
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

import msgspec

from splitbrain.patched.patch import Patch, PatchError, apply_patch, read_patch

#: The package that patches change, and its folder.
_PACKAGE: Final = __name__.partition(".")[0]
_ROOT: Final = Path(__file__).parents[1]
#: Folder of the copies for another interpreter, beside files that a patch may be named as.
_COPIES: Final = "patches"


class PatchedModules(MetaPathFinder):
    """The modules that a process loads with changes, by patches of files below a folder.

    Raises:
        PatchError: a patch names a file that is not there, or does not fit it.
    """

    def __init__(self, patches: Sequence[Patch], root: Path) -> None:
        self.patches = tuple(patches)
        sources: dict[str, str] = {}
        for patch in patches:
            for part in patch.files:
                source = sources.get(part.path) or _read(patch.name, root, part.path)
                sources[part.path] = apply_patch(patch.name, source, part)
        #: Module's full name to its changed source.
        self.sources: Mapping[str, str] = {
            _module_name(path): source for path, source in sources.items()
        }

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where a changed module is found; None for every other."""
        source = self.sources.get(fullname)
        spec = None if source is None else PathFinder.find_spec(fullname, path, target)
        if source is None or spec is None:
            return None
        assert isinstance(spec.loader, SourceFileLoader)
        spec.loader = _PatchedLoader(fullname, spec.loader.path, source)
        spec.cached = None
        return spec


class _PatchedLoader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, source: str) -> None:
        super().__init__(fullname, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        # Of a name that is no file tracebacks ask the loader for the lines.
        return self.source_to_code(self._source, f"{self.path}, patched")

    def get_source(self, fullname: str) -> str:
        return self._source


def read_patch_file(path: Path) -> Patch:
    """Return the patch of a file, named as the file is.

    Raises:
        PatchError: the file cannot be read, or holds no patch.
    """
    try:
        patch = read_patch(path.stem, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise PatchError(f"Patch {path} cannot be read: {problem}. Name a text file.") from error
    return msgspec.structs.replace(patch, file=str(path))


def install_patches(patches: Sequence[Patch]) -> None:
    """Apply patches to what this process loads from now on; without any, does nothing.

    Raises:
        PatchError: one does not fit, this process has a set already, or has loaded such a module.
    """
    if not patches:
        return
    if installed_patches():
        raise PatchError("This process has patches already. Start another one for others.")
    finder = PatchedModules(patches, _ROOT)
    if loaded := sorted(set(finder.sources) & set(sys.modules)):
        raise PatchError(f"{loaded[0]} is loaded already. Start with {_PACKAGE}.patched.")
    sys.meta_path.insert(0, finder)


def load_apart(module: str, rooms: Sequence[str], patches: Sequence[Patch]) -> ModuleType:
    """A module with all that it imports from some rooms, loaded anew and patched; the caller's own.

    Nothing else in this process sees the copies, and they see each other alone: who imports within
    a function, after this has returned, gets the modules of the process. No other thread may import
    from the rooms meanwhile. The rooms, loaded already, hold all that the patches change; these are
    applied after those of this process.

    Raises:
        PatchError: one does not fit.
    """
    finder = PatchedModules([*installed_patches(), *patches], _ROOT)
    before = _take_out(rooms)
    sys.meta_path.insert(0, finder)
    try:
        return importlib.import_module(module)
    finally:
        sys.meta_path.remove(finder)
        _take_out(rooms)
        sys.modules.update(before)
        for room in rooms:
            parent, _, name = room.rpartition(".")
            setattr(sys.modules[parent], name, before[room])


def _take_out(rooms: Sequence[str]) -> dict[str, ModuleType]:
    within = tuple(f"{room}." for room in rooms)
    names = [name for name in sys.modules if name in rooms or name.startswith(within)]
    return {name: sys.modules.pop(name) for name in names}


def installed_patches() -> tuple[Patch, ...]:
    """Return the patches of this process."""
    finders = [each for each in sys.meta_path if isinstance(each, PatchedModules)]
    return finders[0].patches if finders else ()


def installed_options() -> str:
    """Return what a command line has to end with that is to run under this process' patches."""
    return "".join(f" --patch {shlex.quote(patch.file)}" for patch in installed_patches())


def file_name(patch: Patch) -> str:
    """Return the name of a patch's file without its folder, which another machine has not."""
    return Path(patch.file).name or f"{patch.name}.patch"


def module_words(
    module: str, folder: Callable[[], Path], seen_as: str | None = None, more: Sequence[Patch] = ()
) -> list[str]:
    """``-m MODULE`` for an interpreter that is to have the patches of this process, and more.

    They are written into the folder, if there are any; the other interpreter may see it elsewhere.

    Raises:
        OSError: a patch cannot be written.
    """
    if not (patches := [*installed_patches(), *more]):
        return ["-m", module]
    written = folder()
    (written / _COPIES).mkdir(exist_ok=True)
    files: list[str] = []
    for number, patch in enumerate(patches):
        name = f"{_COPIES}/{file_name(patch)}"
        if f"{seen_as or written}/{name}" in files:
            name = f"{_COPIES}/{number}-{file_name(patch)}"
        (written / name).write_text(patch.text, encoding="utf-8")
        files.append(f"{seen_as or written}/{name}")
    return ["-m", f"{_PACKAGE}.patched", *files, "--", "-m", module]


def _module_name(path: str) -> str:
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    return ".".join([_PACKAGE, *parts])


def _read(name: str, root: Path, path: str) -> str:
    parts = path.split("/")
    # A path that leads elsewhere is no module, whatever stands there.
    is_module = path.endswith(".py") and all(part not in {"", ".", ".."} for part in parts)
    try:
        if is_module:
            return importlib.util.decode_source((root / path).read_bytes())
    except (OSError, UnicodeDecodeError, SyntaxError):
        pass
    raise PatchError(
        f"Patch {name} changes {path}, which is no module of this version. "
        f"Name files as nodes/quorum/leader.py, from the folder of the rooms."
    )
