"""The one door to numba; importing it fails where numba is not installed.

What is compiled here allocates nothing, so it is compiled without numba's counting of references:
handing a tuple of arrays to a small function would cost more than the function does.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])
_OPTIONS: dict[str, Any] = {"_nrt": False}


def compiled(function: _Function) -> _Function:
    """A function that is called from Python; kept beside the source where that can be written."""
    try:
        return cast("_Function", numba.njit(cache=True, **_OPTIONS)(function))
    except RuntimeError:
        return part_of_compiled(function)


def part_of_compiled(function: _Function) -> _Function:
    """A function that is called by compiled ones, and becomes part of them."""
    return cast("_Function", numba.njit(**_OPTIONS)(function))
