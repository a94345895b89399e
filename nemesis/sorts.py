"""The sorts of faults that sweeps draw from, each with its chance, weight, targets and options.

A sort is one kind, or a few drawn as one. The fault's integer settles its options, so that a
scenario determines its faults completely.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from splitbrain.contracts.draws import how, spread
from splitbrain.nemesis.kinds import fault_kind
from splitbrain.nemesis.targets import ALL, FOLLOWER, HALVES, LEADER, random_target


class Sort(msgspec.Struct, frozen=True):
    """Fault kinds that a seed has or lacks as one, and how it draws them."""

    #: The fault's integer picks one of them.
    kinds: tuple[str, ...]
    targets: tuple[str, ...] = (LEADER, FOLLOWER, random_target(1))
    weight: int = 1
    #: Chance that a seed has it; lower for disk faults that disable a node for long.
    chance: float = 0.5
    #: Drawn apart, for few seeds: one in a world is enough, and more would crowd others out.
    is_rare: bool = False
    #: Options by the fault's integer.
    options: Callable[[int], dict[str, Any]] = lambda _draw: {}

    @property
    def lies(self) -> bool:
        """Whether no node can detect such a fault; beyond any promise."""
        return fault_kind(self.kinds[0]).rule == "lies"

    @property
    def is_instant(self) -> bool:
        """Whether such a fault is over at once."""
        return fault_kind(self.kinds[0]).is_instant


_ANY: Final = (LEADER, LEADER, FOLLOWER, random_target(1))
_COMMON: Final = (LEADER, FOLLOWER, random_target(1))
_GROUPS: Final = (*_ANY, HALVES)
#: Chances of faults that disable a node for long, and of rare ones.
_SELDOM: Final = 0.4
_RARELY: Final = 0.2
#: Ranges: delays from 1 ms to half a second, clock jumps from 1 ms to half an hour.
_DELAY_US: Final = 1_000
_DELAY_DOUBLINGS: Final = 9
_JUMP_US: Final = 1_000
_JUMP_DOUBLINGS: Final = 20
_FLAPS_MIN: Final = 3
_FLAPS_SPAN: Final = 6
#: Most room left on a full disk.
_SPARE_BYTES: Final = 4_096


def _late(draw: int) -> dict[str, Any]:
    return delayed_by(spread(how(draw), _DELAY_US, _DELAY_DOUBLINGS))


def delayed_by(delay_us: int) -> dict[str, Any]:
    """Return the options of a link delay without jitter."""
    return {"delay_us": delay_us, "jitter_us": 0}


def _jump(draw: int) -> dict[str, Any]:
    draws = how(draw)
    size_us = spread(draws, _JUMP_US, _JUMP_DOUBLINGS)
    return {"offset_us": -size_us if draws.below(2) else size_us}


def _flaps(draw: int) -> dict[str, Any]:
    return {"count": _FLAPS_MIN + how(draw).below(_FLAPS_SPAN)}


def _spare(draw: int) -> dict[str, Any]:
    return {"spare_bytes": how(draw).below(_SPARE_BYTES)}


#: Sorts by name; their order determines the draws of a seed.
SORTS: Final[Mapping[str, Sort]] = {
    "clock-jump": Sort(("clock-jump",), (*_ANY, ALL), options=_jump),
    "delay": Sort(("delay",), _GROUPS, options=_late),
    "full-disk": Sort(("full-disk",), _COMMON, chance=_SELDOM, options=_spare),
    "flap": Sort(("flap",), _GROUPS, options=_flaps),
    "fsync-fails": Sort(("fsync-fails",), weight=4),
    "kill": Sort(("kill",), weight=4),
    "one-way": Sort(("one-way-in", "one-way-out"), _GROUPS, weight=2),
    "partial": Sort(("partial",), _ANY, weight=2),
    "partition": Sort(("partition",), (*_COMMON, HALVES), weight=4),
    "pause": Sort(("pause",), weight=3),
    "power": Sort(("power",), (*_COMMON, ALL), weight=4),
    "read-errors": Sort(("read-errors",), chance=_SELDOM),
    "rename-fails": Sort(("rename-fails",), chance=_RARELY, is_rare=True),
    "disconnect": Sort(("disconnect",), (*_ANY, ALL)),
    "roll-back": Sort(("roll-back",), chance=_SELDOM),
    "rot-checkpoint": Sort(("rot-checkpoint",), chance=_RARELY, is_rare=True),
    "rot-identity": Sort(("rot-identity",), chance=_RARELY, is_rare=True),
    "rot-log": Sort(("rot-log",), weight=6),
    "rot-mark": Sort(("rot-mark",), chance=_RARELY, is_rare=True),
    "rot-state": Sort(("rot-state",), chance=_SELDOM),
    "slow-disk": Sort(("slow-disk",), weight=3),
    "slow-link": Sort(("slow-link",), _ANY, chance=_RARELY, is_rare=True),
    "terminate": Sort(("terminate",), (*_ANY, ALL)),
    "wipe": Sort(("wipe",), chance=_SELDOM),
    "write-fails": Sort(("write-fails",), chance=_RARELY, is_rare=True),
}


def drawn_kinds(*, beyond_promise: bool) -> tuple[str, ...]:
    """Return the fault kinds that seeds may have, sorted."""
    sorts = (sort for sort in SORTS.values() if beyond_promise or not sort.lies)
    return tuple(sorted(kind for sort in sorts for kind in sort.kinds))
