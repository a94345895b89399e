"""Entrance to numba; importing it fails where numba is not installed.

Compiled functions allocate nothing, so numba's counting of references is off: handing a tuple of
arrays to a small function would cost more than the function does.

Compiled code is kept between runs. numba would take it for fresh as long as the file of the
outermost function is the same, even if a rule of the search in another file changed. So it is kept
in a folder named after the content of all ``KERNEL_FILES``.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import config

from splitbrain.checker.linearizability.kernel.kernel_cache import kernel_folder

_Function = TypeVar("_Function", bound=Callable[..., Any])
_OPTIONS: dict[str, Any] = {"_nrt": False}


def compiled(function: _Function) -> _Function:
    """Compile a function that is called from Python; cache it on disk where possible."""
    folder = kernel_folder()
    if folder is None:
        return part_of_compiled(function)
    settings: Any = config
    before = settings.CACHE_DIR
    try:
        # numba reads this while the function is wrapped, not later.
        settings.CACHE_DIR = str(folder)
        return cast("_Function", numba.njit(cache=True, **_OPTIONS)(function))
    except RuntimeError:
        return part_of_compiled(function)
    finally:
        settings.CACHE_DIR = before


def part_of_compiled(function: _Function) -> _Function:
    """Compile a function into its compiled callers."""
    return cast("_Function", numba.njit(**_OPTIONS)(function))
