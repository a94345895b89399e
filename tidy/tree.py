"""Files that belong to the project, and the form of a finding."""

import subprocess
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True, order=True)
class Finding:
    """One breach of the house style."""

    path: str
    #: From 1; 0 for the file as a whole.
    line: int
    sentence: str

    def __str__(self) -> str:
        """Return the form that editors and CI servers make clickable."""
        return f"{self.path}:{self.line}: {self.sentence}"


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
