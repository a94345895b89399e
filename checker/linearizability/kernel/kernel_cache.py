"""Folder of compiled code between runs, one for each state of the kernel's source.

Imports no numba, so that a caller can find out cheaply whether the kernel has to be compiled first,
which takes some ten seconds once. Only numba writes there.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

#: Sources of the compiled code, beside this file.
KERNEL_FILES: Final = (
    "columns.py",
    "jit.py",
    "kernel_frontier.py",
    "kernel_layout.py",
    "kernel_rules.py",
    "kernel_search.py",
    "kernel_sweep.py",
    "kernel_zones.py",
)
#: Functions that take long to compile, by file.
_OUTERMOST: Final = ("kernel_search.search", "kernel_frontier.frontier", "kernel_zones.zones_agree")
_LETTERS: Final = 16


@cache
def kernel_folder() -> Path | None:
    """Return the folder for the source as it is; None where no file can be written.

    It lies beside the source, like Python's own compiled code, or else in the user's cache folder.
    """
    here = Path(__file__).parent
    digest = sha256()
    for name in KERNEL_FILES:
        digest.update(here.joinpath(name).read_bytes())
    name = f"kernel-{digest.hexdigest()[:_LETTERS]}"
    for place in (here / "__pycache__", Path.home() / ".cache" / "splitbrain"):
        folder = place / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        return folder
    return None


def is_compiled() -> bool:
    """Return whether all compiled code is present for the source as it is."""
    folder = kernel_folder()
    return folder is not None and all(any(folder.glob(f"*/{name}-*.nbc")) for name in _OUTERMOST)
