"""Rules about names and places of files."""

from collections.abc import Iterable
from pathlib import PurePosixPath

from tidy.tree import Finding

#: Names that say nothing about what is inside.
EMPTY_NAMES = frozenset({"utils", "util", "helpers", "helper", "common", "misc"})


def check_names(paths: Iterable[PurePosixPath]) -> list[Finding]:
    """Names that say nothing, Python where a package of that name would be shadowed."""
    found: list[Finding] = []
    for path in paths:
        parts = {PurePosixPath(part).stem for part in path.parts}
        found += [
            Finding(str(path), 0, f"the name {name!r} says nothing; name the thing")
            for name in sorted(parts & EMPTY_NAMES)
        ]
        if path.parts[0] == "docker" and path.name == "__init__.py":
            found.append(
                Finding(str(path), 0, "docker/ must be no package: it would shadow the library")
            )
        if path.parts[0] == "tests" and path.name == "__init__.py":
            found.append(Finding(str(path), 0, "tests are no packages (importmode=importlib)"))
    return found
