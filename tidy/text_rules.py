"""Rules about the text of any file: nothing that holds on one machine only, nothing unfinished."""

import re
from pathlib import PurePosixPath

from tidy.tree import Finding

#: Generated or foreign text.
EXEMPT = frozenset({"requirements.lock", "package-lock.json"})

#: Below these lie one machine's or one user's files.
_PRIVATE_FOLDERS = ("root", "home", "work", "Users")
_MACHINE_PATH = re.compile(rf"(?<![\w./~}}-])/(?:{'|'.join(_PRIVATE_FOLDERS)})/\w")

#: Package sources are the user's choice, never the project's; spelled apart so as not to match.
_HOSTS = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("registry", "npmjs", "org"),
        ("repo1", "maven", "apache", "org"),
        ("deb", "debian", "org"),
        ("proxy", "golang", "org"),
    )
)

#: Spelled apart for the same reason.
_UNFINISHED = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b")


def check_text(path: PurePosixPath, text: str) -> list[Finding]:
    """Machine paths, registry hosts, unfinished work, careless shell scripts."""
    if path.name in EXEMPT or "corpus" in path.parts:
        return []
    found: list[Finding] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if _MACHINE_PATH.search(line):
            found.append(Finding(str(path), number, "an absolute path of one machine"))
        if _UNFINISHED.search(line):
            found.append(Finding(str(path), number, "unfinished work; finish it or open an issue"))
        found += [
            Finding(str(path), number, f"names the package source {host}")
            for host in _HOSTS
            if host in line
        ]
    if text.startswith("#!") and "sh" in text.split("\n", 1)[0]:
        found += _check_shell(path, text)
    return found


def _check_shell(path: PurePosixPath, text: str) -> list[Finding]:
    strict = "set -euo pipefail" if "bash" in text.split("\n", 1)[0] else "set -eu"
    if strict in text:
        return []
    return [Finding(str(path), 1, f"a script without {strict!r} goes on after a failure")]
