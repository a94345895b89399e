"""Naming of a violation of linearizability, from the operations that contradict each other; pure.

The core says where to look, and a rule must prove the name from all operations of the part. Where
none does, or where the model is a user's own, the violation stays "not linearizable": a name that
is only likely would send its reader the wrong way.
"""

from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import Any, Final

import msgspec

from splitbrain.checker.anomalies.account import step_of, tell
from splitbrain.checker.anomalies.cell_rules import Named, name_of_cell
from splitbrain.checker.anomalies.cells import READINGS, Cell, Reading, cells_of
from splitbrain.checker.anomalies.names import (
    DOUBLE_CAS,
    DOUBLE_GRANT,
    DOUBLE_SUCCESS,
    FORK,
    LOST_UPDATE,
    NOT_LINEARIZABLE,
)
from splitbrain.checker.anomalies.sequence_rules import (
    Texts,
    name_of_count,
    name_of_queue,
    name_of_text,
    name_of_tokens,
)
from splitbrain.checker.models.counter import Counter
from splitbrain.checker.models.element_set import ElementSet
from splitbrain.checker.models.locks import FencedRegister, Mutex
from splitbrain.checker.models.model import Model, freeze
from splitbrain.checker.models.queues import (
    BoundedFifoQueue,
    FifoQueue,
    PriorityQueue,
    Stack,
    UnorderedQueue,
)
from splitbrain.checker.models.register import CasRegister, KeyValue, MultiRegister
from splitbrain.history.records import PairedOperation

#: Names of two successes on one state, by model.
_TWICE: Final[dict[type[Model], str]] = {
    CasRegister: DOUBLE_CAS,
    Mutex: DOUBLE_GRANT,
    # Each read what the other replaced: the original sense of a lost update.
    MultiRegister: LOST_UPDATE,
}
#: Elements of a set that are looked at.
_ELEMENTS_MAX: Final = 200
#: Latest moment of a history whose times are only an order, ns.
_UNTIMED_MAX_NS: Final = 1_000_000


def with_name(
    violation: dict[str, Any],
    operations: Sequence[PairedOperation],
    failed: Sequence[PairedOperation],
    model: Model,
) -> dict[str, Any]:
    """Return a violation with its ``anomaly``, and the ``steps`` and ``account`` that prove it.

    Args:
        violation: with a ``core``.
        operations: all of its part, ``ok`` and ``info``.
        failed: those of its part that certainly did not happen.
        model: what it was judged by.
    """
    core = [operation["index"] for operation in violation["core"]]
    culprit = violation.get("operation")
    if culprit is not None:
        # The operation without a place is looked at first.
        core = [culprit["index"], *(index for index in core if index != culprit["index"])]
    named = name_of_core(core, operations, failed, model)
    if named is None:
        return {**violation, "anomaly": NOT_LINEARIZABLE}
    timed = any(operation.start > _UNTIMED_MAX_NS for operation in operations)
    return {
        **violation,
        "anomaly": named.name,
        "steps": [msgspec.to_builtins(step) for step in named.steps],
        "account": tell(named.name, named.steps, lambda _step: None, timed=timed),
    }


def name_of_core(
    core: Sequence[int],
    operations: Sequence[PairedOperation],
    failed: Sequence[PairedOperation],
    model: Model,
) -> Named | None:
    """Return the name of a contradiction; None where none can be proven.

    ``core`` are indexes, the most telling first.
    """
    kind, inside = type(model), set(core)
    everything = [*operations, *failed]
    if kind in (FifoQueue, BoundedFifoQueue, UnorderedQueue):
        return name_of_queue(everything, inside, ordered=kind is not UnorderedQueue)
    if isinstance(model, (Stack, PriorityQueue)):
        return name_of_queue(everything, inside, put=model.put, ordered=False)
    if kind is Counter:
        return name_of_count(everything, inside)
    if kind is KeyValue and any(operation.f == "append" for operation in everything):
        texts = Texts(everything)
        elements = texts.elements(o for o in everything if o.index in inside)
        reading = Reading(texts.facts, initial=False)
        found = _name_of_cells(core, everything, reading, elements, DOUBLE_SUCCESS)
        return found or name_of_text(texts, everything, inside)
    if kind is FencedRegister and (named := name_of_tokens(everything, inside)) is not None:
        return named
    reading = READINGS.get(kind)
    if reading is None:
        return None
    of_core = [operation for operation in everything if operation.index in inside]
    elements = _elements(of_core, everything) if kind is ElementSet else ()
    return _name_of_cells(core, everything, reading, elements, _TWICE.get(kind, DOUBLE_SUCCESS))


def _name_of_cells(
    core: Sequence[int],
    operations: Sequence[PairedOperation],
    reading: Reading,
    elements: Sequence[Hashable],
    twice: str,
) -> Named | None:
    members = {operation.index: operation for operation in operations if operation.index in core}
    cells = cells_of(operations, reading, elements)
    for index in core:
        for cell in cells.values():
            named = name_of_cell(cell, index, members, twice, answers=reading.answers)
            if named is not None:
                return named
    return _long_fork([*members.values()], cells)


def _elements(
    core: Sequence[PairedOperation], operations: Sequence[PairedOperation]
) -> list[Hashable]:
    """Return the elements that the operations of a core tell apart, of a set."""
    asked = {freeze(o.argument) for o in core if o.f != "read"}
    shown = [frozenset(map(freeze, o.result or ())) for o in core if o.f == "read"]
    added = {freeze(o.argument) for o in operations if o.f == "add" and o.type != "fail"}
    differing = frozenset[Hashable]().union(*shown) - frozenset(added).intersection(*shown)
    return sorted(asked | differing, key=repr)[:_ELEMENTS_MAX]


def _long_fork(core: Sequence[PairedOperation], cells: dict[Hashable, Cell]) -> Named | None:
    """Name two answers each of which shows something new that the other lacks.

    New is what replaced the initial value, which nothing set again.
    """
    grown = [cell for cell in cells.values() if not cell.setters.get(cell.initial)]
    new: dict[int, set[Hashable]] = {}
    old: dict[int, set[Hashable]] = {}
    for cell in grown:
        for sight in cell.sights:
            seen = old if sight.value == cell.initial else new
            seen.setdefault(sight.operation.index, set()).add(cell.name)
    for one, other in combinations(core, 2):
        ahead = new.get(one.index, set()) & old.get(other.index, set())
        behind = old.get(one.index, set()) & new.get(other.index, set())
        if ahead and behind:
            first, second = sorted((one, other), key=lambda o: (o.end or 0, o.index))
            rest = ": each shows something that the other lacks"
            return Named(FORK, (step_of(first), step_of(second, rest)))
    return None
