"""The virtual clock: actions in the order of their time, and of their asking where times are equal.

Time moves only between actions and is an integer of microseconds. A world in which one instant
never ends is broken, and is told so. Must never ask the machine for the time.
"""

import heapq
from collections.abc import Callable
from typing import Final

from splitbrain.contracts.scenario import ViolationError

#: Actions at one instant above which a world is taken to spin.
ACTIONS_AT_ONCE_MAX: Final = 20_000
#: Id of the invariant in ``docs/invariants.md``.
SPINNING: Final = "INV-30"


class Pending:
    """An action that waits for its time."""

    __slots__ = ("action",)

    def __init__(self, action: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action

    @property
    def is_pending(self) -> bool:
        """Whether it is still to come."""
        return self.action is not None

    def cancel(self) -> None:
        """Forget the action; nothing happens if it has run."""
        self.action = None


class Scheduler:
    """One world's clock."""

    def __init__(self) -> None:
        #: Microseconds since the start of the world.
        self.now = 0
        #: Actions that have run.
        self.step = 0
        self._asked = 0
        self._heap: list[tuple[int, int, Pending]] = []

    def after(self, delay_us: int, action: Callable[[], None]) -> Pending:
        """Run an action later; a negative delay is none."""
        self._asked += 1
        pending = Pending(action)
        time = self.now + delay_us if delay_us > 0 else self.now
        heapq.heappush(self._heap, (time, self._asked, pending))
        return pending

    def run(self, until: int, stop: Callable[[], bool] | None = None) -> bool:
        """Run what is due up to ``until``, included; the clock then shows it.

        Args:
            until: virtual time.
            stop: asked after each action; true ends the run with the clock where it is.

        Returns:
            Whether ``stop`` ended it.

        Raises:
            ViolationError: one instant does not end (``INV-30``).
        """
        heap = self._heap
        at_once = 0
        while heap and heap[0][0] <= until:
            time, _, pending = heapq.heappop(heap)
            action = pending.action
            if action is None:
                continue
            if time != self.now:
                self.now = time
                at_once = 0
            at_once += 1
            if at_once > ACTIONS_AT_ONCE_MAX:
                raise ViolationError(
                    SPINNING, f"more than {ACTIONS_AT_ONCE_MAX:,} steps at {time / 1_000:,.3f} ms"
                )
            self.step += 1
            pending.action = None
            action()
            if stop is not None and stop():
                return True
        self.now = max(self.now, until)
        return False
