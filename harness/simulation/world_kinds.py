"""The kinds of faults as simulated worlds carry them out.

All but a few have the course that they have on machines, or that only a world can have. The few
are here, each with what differs, until a measurement allows to give them up.
"""

from typing import Final

import msgspec

from contracts.runtime import SIMULATED_CAPABILITIES
from nemesis.acts import Cut, Restore
from nemesis.courses import Course, Setting, Step
from nemesis.families.bad_links import other_of_a_pair, to_and_fro
from nemesis.fault_kind import FaultKind
from nemesis.fault_options import FlapOptions
from nemesis.kinds import fault_kind, kind_names

_replace: Final = msgspec.structs.replace


def _flap(setting: Setting, options: FlapOptions) -> Course:
    links = setting.links
    half_us = max(1, setting.duration_us // (2 * options.count))
    strokes = (
        Step(((Restore if number % 2 else Cut)(links),), number * half_us)
        for number in range(2 * options.count)
    )
    return Course(steps=tuple(strokes), heal=(Restore(links),))


#: The world's course of each kind that has another one there, by its name.
_OWN: Final = {
    kind.name: kind
    for kind in (
        # The other node is settled by another number than on machines.
        _replace(fault_kind("partial"), joined=other_of_a_pair, links=to_and_fro),
        # Faster than a probe could see.
        _replace(fault_kind("flap"), course=_flap),
    )
}


def kind_in_worlds(name: str) -> FaultKind:
    """The kind of this name.

    Raises:
        UsageError: there is none.
    """
    return _OWN.get(name) or fault_kind(name)


def names_in_worlds() -> tuple[str, ...]:
    """Names of the kinds that a simulated world can carry out, sorted."""
    able = SIMULATED_CAPABILITIES
    return tuple(name for name in kind_names() if fault_kind(name).needs <= able)
