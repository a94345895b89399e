"""Time and memory of long computations: a budget that pure code polls, and looks for cycles."""

import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, Protocol

#: Objects made between two looks for cycles; Python's own number is 700.
_MADE_BEFORE_COLLECTION: Final = 50_000


class Budget(Protocol):
    """Limit polled by long computations; the caller owns the clock and the memory gauge."""

    def exhausted(self) -> str | None:
        """Return the reason to stop now ("time budget of 60 s used up"), or None to go on."""
        ...


class Unlimited:
    """A budget that never ends, for tests and small inputs."""

    def exhausted(self) -> str | None:
        """Return None: never stop."""
        return None


@contextmanager
def seldom_collected() -> Generator[None]:
    """Let the collector look for cycles seldom, where nearly all that is made is kept."""
    before = gc.get_threshold()
    gc.set_threshold(_MADE_BEFORE_COLLECTION, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
