"""Files that belong to the project, and the form of a finding."""

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

#: Line, from 1, or 0 for the file as a whole; and a sentence.
Breach = tuple[int, str]


@dataclass(frozen=True, order=True)
class Finding:
    """One breach of the house style."""

    path: str
    line: int
    sentence: str

    def __str__(self) -> str:
        """Return the form that editors and CI servers make clickable."""
        return f"{self.path}:{self.line}: {self.sentence}"


def findings_in(path: PurePosixPath, breaches: Iterable[Breach]) -> list[Finding]:
    """Return a file's breaches as findings."""
    return [Finding(str(path), line, sentence) for line, sentence in breaches]


def project_files(root: Path) -> list[PurePosixPath]:
    """Files that are in git, or would be with ``git add .``, relative to ``root``.

    Raises:
        subprocess.CalledProcessError: ``root`` is in no git work tree.
    """
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    names = sorted({name for name in listing.stdout.split("\0") if name})
    return [PurePosixPath(name) for name in names]
