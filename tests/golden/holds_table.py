"""Two faults side by side, as what holds nodes and links sees them: a line for each pair and place.

The steps of both are done in turn, then they are healed, once in the order of their beginnings and
once the other way round. Behind each act stands what is admitted of it: ``=`` all, ``-`` nothing,
else the acts that are done instead.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, zip_longest
from typing import Any, Final, Protocol, cast

import msgspec

from splitbrain.contracts.fault import PINNED_NODES, ActualFault, Link
from splitbrain.contracts.names import NodeName
from splitbrain.nemesis import acts
from splitbrain.nemesis.acts import Act, places
from splitbrain.nemesis.expectations import Expectation
from splitbrain.nemesis.fault_kind import Course
from splitbrain.nemesis.fault_options import BEYOND_PROMISE
from splitbrain.nemesis.kinds import fault_kind, machine_kind_names
from splitbrain.nemesis.targets import ClusterView
from tests.golden.nemesis_rendering import compact, fields_set
from tests.golden.story import NODES, planned

#: Kinds whose acts are those of another one, with other values: where two are beside each other,
#: the values tell whose is in force.
_OTHER_VALUES: Final = ("clock-jump", "delay")
_LASTS_US: Final = 3_000_000
#: How the places of two faults lie to each other: the nodes hit by each.
_PLACES: Final = {
    "same": (("n1",), ("n1",)),
    "overlapping": (("n1", "n2"), ("n2", "n3")),
    "disjoint": (("n1",), ("n4",)),
}


class Holding(Protocol):
    """Knows what all faults hold."""

    def admit(self, fault: int, act: Act) -> tuple[Act, ...]:
        """The acts to be done for an act of a fault."""
        ...

    def done(self, fault: int, act: Act) -> None:
        """An act that was admitted is done."""
        ...

    def is_down(self, node: NodeName) -> bool:
        """Whether a fault holds the node down."""
        ...

    def disturbs(self, fault: int, expectation: Expectation, *, is_healed: bool) -> bool:
        """Whether other faults keep what is expected from being seen."""
        ...

    def others(self, fault: int) -> tuple[int, ...]:
        """Other faults that hold something."""
        ...


def representatives() -> dict[str, list[str]]:
    """One kind of each course, to all kinds whose courses are made of the same acts."""
    by_acts: dict[object, list[str]] = {}
    for name in machine_kind_names():
        course = _course(name, NODES[:1], fits=False)
        shape = [[type(act) for act in those] for those in (*_steps(course), course.heal)]
        by_acts.setdefault(repr(shape), []).append(name)
    found = {names[0]: names for names in by_acts.values()}
    found |= {name: [name] for name in _OTHER_VALUES}
    return dict(sorted(found.items()))


def table(make: Callable[[], Holding]) -> Iterator[str]:
    """All lines; ``make`` makes what knows what all faults hold."""
    kinds = representatives()
    yield "## kinds of the same acts"
    for names in kinds.values():
        yield " ".join(names)
    for first in kinds:
        yield f"## {first} and then another"
        for second in kinds:
            for place, hit in _PLACES.items():
                yield f"{second} {place}: {_pair(make, (first, second), hit)}"


def _pair(
    make: Callable[[], Holding], kinds: tuple[str, str], hit: tuple[Sequence[str], Sequence[str]]
) -> str:
    courses = [_course(name, nodes) for name, nodes in zip(kinds, hit, strict=True)]
    told: list[str] = []
    heals: list[str] = []
    is_usual = True
    for order in ((0, 1), (1, 0)):
        holds = make()
        begun = [_admitted(holds, index, act) for index, act in _in_turn(courses)]
        if not told:
            told += [" ".join(begun), *_in_force(holds, courses)]
        healed = [_admitted(holds, index, act) for index in order for act in courses[index].heal]
        left = [f"left {where}" for where in _left(holds)]
        heals.append(f"heal {order[0]} {order[1]}: {' '.join([*healed, *left])}")
        is_usual = is_usual and not left and all(one.endswith("=") for one in healed)
    return " | ".join([*told, *(["both heals ="] if is_usual else heals)])


def _in_turn(courses: Sequence[Course]) -> Iterator[tuple[int, Act]]:
    """The acts of the steps of both, a step of each in turn."""
    for both in zip_longest(*(_steps(course) for course in courses), fillvalue=()):
        for index, step in enumerate(both):
            for act in step:
                yield index, act


def _in_force(holds: Holding, courses: Sequence[Course]) -> Iterator[str]:
    """Tell who is down, who else holds something, and what of each cannot be seen now."""
    words = [f"down {','.join(down)}"] if (down := _down(holds)) else []
    holding = [index for index in (0, 1) if index in holds.others(1 - index)]
    words += [] if holding == [0, 1] else [f"only {holding} hold"]
    for index, course in enumerate(courses):
        seen = [item for step in course.steps for item in step.seen]
        parts = (
            ("seen", seen, False),
            ("settled", course.settled, True),
            ("healed", course.healed, True),
            ("resumed", course.resumed, True),
        )
        told: list[str] = []
        for name, items, is_healed in parts:
            hidden = [one for one in items if holds.disturbs(index, one, is_healed=is_healed)]
            told += [f"{name} {len(hidden)}/{len(items)}"] if hidden else []
        words += [f"hidden of {index} {' '.join(told)}"] if told else []
    if words:
        yield ", ".join(words)


def _left(holds: Holding) -> Iterator[str]:
    yield from (f"{node} down" for node in _down(holds))
    yield from (f"of {index}" for index in (0, 1) if index in holds.others(1 - index))


def _down(holds: Holding) -> list[NodeName]:
    return [node for node in NODES if holds.is_down(node)]


def _admitted(holds: Holding, index: int, act: Act) -> str:
    done = holds.admit(index, act)
    holds.done(index, act)
    if not done:
        what = "-"
    elif done == (act,):
        what = "="
    else:
        what = f"({' + '.join(_words(those) for those in _alike(done))})"
    return f"{index}{type(act).__name__}{what}"


def _alike(done: Iterable[Act]) -> Iterator[list[Act]]:
    """Acts in a row that differ in their place alone."""
    for _, those in groupby(done, key=lambda act: (type(act), _values(act))):
        yield list(those)


def _words(those: Sequence[Act]) -> str:
    there = [place for act in those for place in places(act)]
    is_link = isinstance(those[0], acts.LinkAct)
    where = compact(cast("list[Link]", there)) if is_link else ",".join(map(str, there))
    count = f"{len(those)} " if len(those) > 1 else ""
    return f"{count}{type(those[0]).__name__} {where} {_values(those[0])}".strip()


def _values(act: Any) -> str:
    """The value by which acts of one sort differ: their shape, share, limit, warp."""
    those: Iterable[Any] = (
        getattr(act, field.name)
        for field in msgspec.structs.fields(act)
        if field.name not in ("nodes", "links")
    )
    return " ".join(
        fields_set(one) if hasattr(one, "__struct_fields__") else f"{one}" for one in those
    )


def _steps(course: Course) -> list[tuple[Act, ...]]:
    return [step.acts for step in course.steps]


def _course(name: str, hit: Sequence[str], *, fits: bool = True) -> Course:
    """The course of a kind at these nodes."""
    kind = fault_kind(name)
    options: dict[str, Any] = {BEYOND_PROMISE: True, PINNED_NODES: list(hit)}
    if not fits and kind.nodes_min > len(hit):
        del options[PINNED_NODES]
    fault = planned(name, kind.first_target, options=options)
    actual: ActualFault | None = kind.actual(fault, ClusterView(NODES, leader=NODES[0]))
    assert actual is not None, name
    return kind.course_of(actual, _LASTS_US, NODES)
