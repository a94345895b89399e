"""The all-seeing oracle of the simulated world: ghost state, and the invariants that watch it.

Ghost state is what no node can know: what was ever committed, who ever led, who ever voted. The
invariants are the small classes of ``invariants.py``; this module only feeds them. It never
influences the nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodes.quorum.effects import Effect
from nodes.quorum.events import RequestReceived
from tests.simulation.ghost import Ghost
from tests.simulation.invariants import INVARIANTS, Invariant

if TYPE_CHECKING:
    from tests.simulation.clients import Operation
    from tests.simulation.host import Host
    from tests.simulation.world import World


class Oracle:
    """Runs every invariant on every effect that it watches."""

    def __init__(self, world: World) -> None:
        self.ghost = Ghost(world)
        muted = world.muted
        self.invariants: list[Invariant] = [
            kind(self.ghost) for kind in INVARIANTS if kind.id not in muted
        ]
        self._before: dict[type, list[Invariant]] = {}
        self._after: dict[type, list[Invariant]] = {}
        for invariant in self.invariants:
            for effect_type in invariant.before_effects:
                self._before.setdefault(effect_type, []).append(invariant)
            for effect_type in invariant.after_effects:
                self._after.setdefault(effect_type, []).append(invariant)

    def started(self, host: Host) -> None:
        self.ghost.high_watermarks[host.node_id] = -1
        for invariant in self.invariants:
            invariant.started(host)

    def asked(self, event: RequestReceived) -> None:
        """A request reached a node."""
        self.ghost.asked[event.connection] = event.request

    def before(self, host: Host, effect: Effect) -> None:
        for invariant in self._before.get(type(effect), ()):
            invariant.before(host, effect)

    def after(self, host: Host, effect: Effect) -> None:
        for invariant in self._after.get(type(effect), ()):
            invariant.after(host, effect)

    def floor(self, key: int) -> int:
        """Offset of the latest write that a read beginning now must reflect."""
        return self.ghost.floors.get(key, -1)

    def acknowledged(self, operation: Operation, offset: int) -> None:
        for invariant in self.invariants:
            invariant.acknowledged(operation, offset)
        self.ghost.acknowledged.append((offset, operation.payload))
        self.ghost.raise_floor(operation.key, offset)

    def read(self, operation: Operation, result: tuple[int, int]) -> None:
        for invariant in self.invariants:
            invariant.read(operation, result)
        self.ghost.read_count += 1
        self.ghost.raise_floor(operation.key, result[1])

    def finished(self, healed_at: int) -> None:
        """The run is over; it healed at this time."""
        for invariant in self.invariants:
            invariant.finished(healed_at)
