"""A command that the first Ctrl-C ends in order and the second one at once: sweeps and searches.

Must never end anything itself: whoever carries it out looks at its ``Stop``.
"""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console

from splitbrain.harness.console.interrupts import LEFT_EXIT_CODE, Interrupts
from splitbrain.harness.console.stop import Stop

InterruptsT = TypeVar("InterruptsT", bound=Interrupts)


@contextmanager
def stopped_in_order(
    stop: Stop,
    *,
    left: str,
    said: str = "",
    leave: Callable[[int], None] | None = None,
    kind: type[InterruptsT] = Interrupts,
) -> Generator[InterruptsT]:
    """Have signals set ``stop``, then leave, while the context lasts.

    Args:
        stop: set by the first signal.
        left: the last word of a process that was left by the second.
        said: told at the first one; empty: nothing.
        leave: ends the process; for tests.
        kind: makes what takes the signals.
    """
    errors = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    interrupts = kind(errors.print, leave or os._exit)

    def interrupt() -> str:
        stop.interrupt()
        return said

    with interrupts, interrupts.during(interrupt, farewell=lambda: (left, LEFT_EXIT_CODE)):
        yield interrupts
