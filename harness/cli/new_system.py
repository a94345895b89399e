"""``splitbrain new-system``: a folder with a system of one's own that runs as it is.

Its server and adapter are those of ``docs/your-system.md``, to be replaced part by part.
"""

import re
import shlex
from pathlib import Path
from string import Template
from typing import Final

from rich.console import Console

from splitbrain.contracts.errors import UsageError
from splitbrain.harness.console.console_lines import say
from splitbrain.harness.console.standard_streams import answer
from splitbrain.plugins.files import hides_module
from splitbrain.systems.registry import names

_SKELETON: Final = Path(__file__).parent / "skeleton"
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")


def _module_name(name: str) -> str:
    """Return a module's name that hides no module: a system is often named as its library is."""
    module = name.replace("-", "_")
    return f"{module}_system" if hides_module(module) else module


def write_system(name: str, folder: Path, console: Console) -> int:
    """Write the folder ``folder/name``, say what can be done with it, and return the exit code.

    Raises:
        UsageError: the name is no name or taken, or there is such a folder, or it cannot be made.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name of a system",
            "Choose small letters, digits and hyphens, such as my-store",
        )
    if name in names():
        raise UsageError(f"there is a system called {name!r} already", "Choose another name")
    place = folder / name
    module = _module_name(name)
    class_name = "".join(part.capitalize() for part in name.split("-"))
    words = {"name": name, "module": module, "class_name": class_name}
    files = {f"{module}.py": "system", "pyproject.toml": "pyproject"}
    texts = {
        file: Template((_SKELETON / f"{part}.txt").read_text(encoding="utf-8")).substitute(words)
        for file, part in files.items()
    }
    try:
        place.mkdir(parents=True)
        for file, text in texts.items():
            (place / file).write_text(text, encoding="utf-8")
    except FileExistsError:
        raise UsageError(f"there is {place} already", "Choose another name or --folder") from None
    except OSError as error:
        raise UsageError(
            f"{place} cannot be written: {error.strerror}", "Choose another --folder"
        ) from error
    system = f"{module}.py:{class_name}"
    for line in (
        f"wrote {', '.join(files)} in {place}; it is a system that runs as it is:",
        f"  cd {shlex.quote(str(place))}",
        f"  splitbrain systems check {system} --runtime local",
        f"  splitbrain test --system {system} --nodes 1 --runtime local --nemesis kill",
        f"  splitbrain init --system {system}",
        "  splitbrain nightly night.toml",
        "`splitbrain docs your-system` says what an adapter must and can do.",
    ):
        say(console, line)
    answer(console, {"folder": place, "files": list(files), "system": system})
    return 0
