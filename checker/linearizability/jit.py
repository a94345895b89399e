"""The one door to numba; importing it fails where numba is not installed."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """The function as machine code; kept beside the source where that can be written."""
    try:
        return cast("_Function", numba.njit(cache=True)(function))
    except RuntimeError:
        return cast("_Function", numba.njit(function))
