"""The kinds of faults as simulated worlds carry them out.

All but a few have the course that they have on machines, or that only a world can have. The few
are here, each with what differs, until a measurement allows to give them up.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from contracts.fault import Link
from contracts.fault_draws import where
from contracts.names import NodeName
from contracts.runtime import SIMULATED
from nemesis.acts import Cut, Restore
from nemesis.courses import Course, Setting, Step
from nemesis.fault_kind import FaultKind
from nemesis.fault_options import (
    FlapOptions,
    NoOptions,
    RotOptions,
)
from nemesis.kinds import fault_kind, kind_names
from nemesis.targets import ClusterView, shuffled
from runtimes.registry import capabilities

_replace: Final = msgspec.structs.replace


def _other_of_a_pair(
    hit: tuple[NodeName, ...], view: ClusterView, draw: int, _options: Any
) -> tuple[NodeName, ...]:
    others = [node for node in view.nodes if node != hit[0]]
    return (hit[0], shuffled(others, where(draw).below(1 << 16))[0])


def _to_and_fro(
    hit: tuple[NodeName, ...], _nodes: tuple[NodeName, ...], _draw: int, _options: Any
) -> tuple[Link, ...]:
    return (Link(hit[0], hit[1]), Link(hit[1], hit[0]))


def _flap(setting: Setting, options: FlapOptions) -> Course:
    links = setting.links
    half_us = max(1, setting.duration_us // (2 * options.count))
    strokes = (
        Step(((Restore if number % 2 else Cut)(links),), number * half_us)
        for number in range(2 * options.count)
    )
    return Course(steps=tuple(strokes), heal=(Restore(links),), healed=())


def _as(other: str, options: msgspec.Struct) -> Callable[[Setting, Any], Course]:
    """The course of another kind, with these options whatever the fault is told."""
    course = fault_kind(other).course
    return lambda setting, _options: course(setting, options)


#: The world's course of each kind that has another one there, by its name.
_OWN: Final = {
    kind.name: kind
    for kind in (
        # The other node is settled by another number than on machines.
        _replace(fault_kind("partial"), joined=_other_of_a_pair, links=_to_and_fro),
        # Faster than a probe could see.
        _replace(fault_kind("flap"), course=_flap),
        # By bytes that rot, and the whole disk instead of a file.
        _replace(
            fault_kind("flip"),
            course=_as("rot-log", RotOptions(restart=1)),
        ),
        _replace(
            fault_kind("restore"),
            course=_as("roll-back", NoOptions()),
        ),
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
    able = capabilities(SIMULATED)
    return tuple(name for name in kind_names() if fault_kind(name).needs <= able)
