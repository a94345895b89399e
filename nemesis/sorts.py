"""The sorts of faults that sweeps draw from, each with its chance, weight, targets and options.

A sort is a kind, or a few that are drawn as one. Its options are settled by the fault's integer, so
that a scenario says whole what its faults do.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from splitbrain.contracts.draws import how, spread
from splitbrain.nemesis.kinds import fault_kind
from splitbrain.nemesis.targets import ALL, FOLLOWER, HALVES, LEADER, random_target


class Sort(msgspec.Struct, frozen=True):
    """Faults that a seed has or has not, and how often it draws them where it has."""

    #: Kinds; the fault's integer settles which.
    kinds: tuple[str, ...]
    targets: tuple[str, ...] = (LEADER, FOLLOWER, random_target(1))
    weight: int = 1
    #: Of a seed to have it. Lower for disks that put a node out for long.
    chance: float = 0.5
    #: Whether few seeds have it, drawn apart: what it shows is shown by one in a world, and more
    #: of them crowd others out.
    is_rare: bool = False
    #: What the fault's integer settles of its options.
    options: Callable[[int], dict[str, Any]] = lambda _draw: {}

    @property
    def lies(self) -> bool:
        """Whether nobody can tell that such a fault has struck, which no seed may promise."""
        return fault_kind(self.kinds[0]).rule == "lies"

    @property
    def is_instant(self) -> bool:
        """Whether such a fault is over at once."""
        return fault_kind(self.kinds[0]).is_instant


_ANY: Final = (LEADER, LEADER, FOLLOWER, random_target(1))
_COMMON: Final = (LEADER, FOLLOWER, random_target(1))
_GROUPS: Final = (*_ANY, HALVES)
#: Chances of what puts a node out for long, and of what is rare.
_SELDOM: Final = 0.4
_RARELY: Final = 0.2
#: Delays take 1 ms up to half a second, clock jumps 1 ms up to half an hour.
_DELAY_US: Final = 1_000
_DELAY_DOUBLINGS: Final = 9
_JUMP_US: Final = 1_000
_JUMP_DOUBLINGS: Final = 20
_FLAPS_MIN: Final = 3
_FLAPS_SPAN: Final = 6
#: Room that a full disk still has, at most.
_SPARE_BYTES: Final = 4_096


def _late(draw: int) -> dict[str, Any]:
    return delayed_by(spread(how(draw), _DELAY_US, _DELAY_DOUBLINGS))


def delayed_by(delay_us: int) -> dict[str, Any]:
    """Options of links that are late by this much."""
    return {"delay_us": delay_us, "jitter_us": 0}


def _jump(draw: int) -> dict[str, Any]:
    draws = how(draw)
    size_us = spread(draws, _JUMP_US, _JUMP_DOUBLINGS)
    return {"offset_us": -size_us if draws.below(2) else size_us}


def _flaps(draw: int) -> dict[str, Any]:
    return {"count": _FLAPS_MIN + how(draw).below(_FLAPS_SPAN)}


def _spare(draw: int) -> dict[str, Any]:
    return {"spare_bytes": how(draw).below(_SPARE_BYTES)}


#: By name; their order settles what a seed draws.
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
    """The kinds of faults that seeds may have, sorted."""
    sorts = (sort for sort in SORTS.values() if beyond_promise or not sort.lies)
    return tuple(sorted(kind for sort in sorts for kind in sort.kinds))
