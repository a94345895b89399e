"""A node's clocks in a simulated world: one that drifts, and a wall clock that jumps."""

from collections.abc import Callable
from functools import partial
from typing import Final

from splitbrain.nodes.quorum.identifiers import Microseconds
from splitbrain.simulation.world.world import Pending, SimulatedWorld

_MILLION: Final = 1_000_000
#: Wall clock at the start of every world, milliseconds since 1970: 2026-01-01.
_EPOCH_MS: Final = 1_767_225_600_000


class NodeClock:
    """Clocks of one machine; they outlive the node's process."""

    def __init__(self, world: SimulatedWorld, drift_ppm: int) -> None:
        """``drift_ppm``: how many microseconds a second it gains, or loses."""
        self._world = world
        self._rate = _MILLION + drift_ppm
        self._wall_shift_us = 0

    def now(self) -> Microseconds:
        """Microseconds of its monotonic clock."""
        return Microseconds(self._world.now * self._rate // _MILLION)

    def wall_clock_ms(self) -> int:
        """Milliseconds since 1970 on its wall clock."""
        return _EPOCH_MS + (self.now() + self._wall_shift_us) // 1_000

    def jump(self, delta_us: int) -> None:
        """Move the wall clock; the monotonic one stays."""
        self._wall_shift_us += delta_us

    def true_delay(self, delay_us: int) -> int:
        """How long in virtual time so much takes on this clock."""
        return -(-delay_us * _MILLION // self._rate)


class LifeTimers:
    """``nodes.server.host.surroundings.Timers`` of one life; an ended life's actions do nothing."""

    def __init__(
        self, world: SimulatedWorld, clock: NodeClock, enter: Callable[[Callable[[], None]], None]
    ) -> None:
        """``enter`` runs an action as the node, now or when it is no longer frozen."""
        self._world = world
        self._clock = clock
        self._enter = enter
        self.now, self.wall_clock_ms = clock.now, clock.wall_clock_ms

    def call_soon(self, action: Callable[[], None]) -> None:
        """After everything that is due at this instant already."""
        self._world.after(0, partial(self._enter, action))

    def call_later(self, delay_us: int, action: Callable[[], None]) -> "LifeTimer":
        """After the delay on the node's clock; never once it was cancelled, frozen or not."""
        timer = LifeTimer(action)
        timer.pending = self._world.after(
            self._clock.true_delay(delay_us), partial(self._enter, timer.ring)
        )
        return timer


class LifeTimer:
    """An action that waits for its time, and maybe then for its node to go on."""

    __slots__ = ("_action", "pending")

    def __init__(self, action: Callable[[], None]) -> None:
        self._action: Callable[[], None] | None = action
        #: Event that rings it in the world.
        self.pending: Pending | None = None

    def cancel(self) -> None:
        """Let it not happen; harmless once it has."""
        self._action = None
        if self.pending is not None:
            self.pending.cancel()

    def ring(self) -> None:
        """Do it, unless it was cancelled meanwhile."""
        action, self._action = self._action, None
        if action is not None:
            action()
