"""Faults that heal soon after something has happened elsewhere, if not before.

A node that was cut off is most dangerous when it comes back just after others went on without it,
and before it has noticed. The clock alone rarely hits that moment; a happening at a node that the
fault did not hit does. Must never heal within the step that was watched, but in a turn of its own.
"""

from collections.abc import Callable

import msgspec

from contracts.fault import Fault
from contracts.names import NodeName
from nemesis.fault_options import UNTIL, UNTIL_COUNT, UNTIL_DELAY_US
from simulation.world.world import SimulatedWorld


class _Waiting(msgspec.Struct):
    index: int
    hit: tuple[NodeName, ...]
    left: int
    delay_us: int


class EarlyHeals:
    """The faults in force of one world that wait for a happening to be healed."""

    def __init__(self, world: SimulatedWorld, heal: Callable[[int], None]) -> None:
        """``heal`` is called with a fault's index; the fault may be healed by then."""
        self._world = world
        self._heal = heal
        self._waiting: dict[str, list[_Waiting]] = {}

    def wait(self, fault: Fault, hit: tuple[NodeName, ...]) -> None:
        """Heal a fault that has just struck these nodes when its options say so."""
        happening = fault.options.get(UNTIL)
        if happening is None:
            return
        waiting = self._waiting.get(happening)
        if waiting is None:
            waiting = self._waiting[happening] = []
            self._world.watch(happening, self._happened)
        left = max(1, int(fault.options.get(UNTIL_COUNT, 1)))
        delay_us = max(0, int(fault.options.get(UNTIL_DELAY_US, 0)))
        waiting.append(_Waiting(fault.index, hit, left, delay_us))

    def _happened(self, node: NodeName, name: str) -> None:
        waiting = self._waiting[name]
        if not waiting:
            return
        for one in waiting:
            if node not in one.hit:
                one.left -= 1
                if one.left == 0:
                    self._world.after(one.delay_us, lambda index=one.index: self._heal(index))
        waiting[:] = [one for one in waiting if one.left > 0]
