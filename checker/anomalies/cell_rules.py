"""Rules that name what is wrong with one cell of an object; pure.

Each rule proves by itself that the history has no order, from a few operations and from all that
may have set a value: it never names on a likelihood. Where it needs that something is gone for
good, an answer by one replica is not enough. Source: ``checker.anomalies.names``.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from splitbrain.checker.anomalies.account import Step, step_of
from splitbrain.checker.anomalies.cells import Cell, Testimony
from splitbrain.checker.anomalies.names import (
    DIRTY_READ,
    FORK,
    LOST_UPDATE,
    LOST_WRITE,
    PHANTOM_VALUE,
    STALE_READ,
    WRONG_REFUSAL,
)
from splitbrain.checker.explanation import precedes
from splitbrain.history.records import PairedOperation


class Named(NamedTuple):
    """Name of an anomaly and the answers that prove it, in the order in which they are told."""

    name: str
    steps: tuple[Step, ...]


#: Answerers by which something that was never seen again counts as lost.
_ANSWERERS_MIN: Final = 2


def name_of_cell(
    cell: Cell, index: int, core: Collection[int], twice: str, *, answers: bool
) -> Named | None:
    """Return the name of what one operation testifies of one cell; None for none.

    Args:
        cell: with the testimony of all operations of the part.
        index: that of the operation.
        core: indexes of the operations that contradict each other.
        twice: name of two operations that succeeded on one value.
        answers: whether answers hold values.
    """
    for rule in (_from_nothing, _twice, _out_of_date) if answers else (_twice,):
        for sight in cell.sights:
            if sight.operation.index == index and (named := rule(cell, sight, core, twice)):
                return named
    for denial in cell.denials:
        if denial.operation.index == index and (named := _wrongly_refused(cell, denial, core)):
            return named
    return None


def from_nowhere(
    answer: PairedOperation,
    shown: str,
    asked: Iterable[PairedOperation],
    missed: Iterable[PairedOperation],
) -> Named | None:
    """Name an answer that shows what none can have done; None where one may have.

    Args:
        answer: the answer.
        shown: the value in words, as ``Cell.shown`` puts them.
        asked: acknowledged and open operations that lead to it, whenever.
        missed: operations that asked for it and certainly did not do it.
    """
    asked = list(asked)
    if any(not precedes(answer, setter) for setter in asked):
        return None
    failed = [operation for operation in missed if not precedes(answer, operation)]
    if failed:
        rest = f"{shown}, the value of an operation that did not happen"
        told = sorted((step_of(failed[-1]), step_of(answer, rest)), key=lambda step: step.time)
        return Named(DIRTY_READ, tuple(told))
    by_then = " by then: it was asked for later" if asked else ""
    rest = f"{shown}, which nobody had asked for{by_then}"
    return Named(PHANTOM_VALUE, (step_of(answer, rest),))


def _from_nothing(
    cell: Cell, sight: Testimony, _core: Collection[int], _twice: str
) -> Named | None:
    """Name an answer with a value that nothing set."""
    answer, value = sight
    if value == cell.initial:
        return None
    asked = [setter for setter in cell.setters.get(value, ()) if setter.index != answer.index]
    return from_nowhere(answer, cell.shown(answer, value), asked, cell.missed.get(value, ()))


def _twice(cell: Cell, sight: Testimony, core: Collection[int], twice: str) -> Named | None:
    """Name two changes that found the same value, which was there once."""
    answer, value = sight
    changes = [
        other.operation
        for other in cell.sights
        if other.value == value and cell.changed_by(other.operation, value)
    ]
    if not cell.changed_by(answer, value):
        return None
    setters = cell.setters.get(value, [])
    settings = len(setters) + (value == cell.initial)
    for rival in changes:
        if rival.index == answer.index or rival.index not in core:
            continue
        both = sorted((answer, rival), key=_ended)
        all_before = all(precedes(setter, change) for setter in setters for change in both)
        if settings < len(changes) or all_before:
            return Named(twice, (step_of(both[0]), step_of(both[1], ", from the same state")))
    return None


def _out_of_date(cell: Cell, sight: Testimony, core: Collection[int], _twice: str) -> Named | None:
    """Name an answer with a value that another one had certainly replaced."""
    answer, value = sight
    setters = cell.possible_setters(value, answer)
    either: Testimony | None = None
    for later in _candidates([*cell.effects, *cell.sights], answer, core):
        if later.value == value or not cell.is_replaced(value, later, setters):
            continue
        if cell.changed_by(answer, value):
            if (named := _of_a_change(cell, sight, later)) is not None:
                return named
        elif cell.is_effect(later) or cell.is_older(setters, value, later.value):
            return _of_a_read(cell, sight, later)
        else:
            either = either or later
    return None if either is None else _of_either(cell, sight, either)


def _of_either(cell: Cell, sight: Testimony, earlier: Testimony) -> Named:
    """Name two answers of which one is stale: nothing set the second's value after the first."""
    answer, value = sight
    found, seen = earlier
    setters = cell.possible_setters(seen, found)
    effects = [effect for effect in cell.effects if effect.value == value]
    for effect in _candidates(effects, found, ()):
        if not cell.changed_by(found, seen) and cell.is_replaced(seen, effect, setters):
            return _of_a_read(cell, earlier, effect)
    second = step_of(answer, f"{cell.shown(answer, value)}, which nothing had set since")
    return Named(STALE_READ, (step_of(found, cell.shown(found, seen)), second))


def _of_a_read(cell: Cell, sight: Testimony, later: Testimony) -> Named:
    """Name an answer that lacks what came before it."""
    answer = sight.operation
    shown = cell.shown(answer, sight.value)
    # That it was acknowledged tells more of what is lost than that somebody was shown it.
    for effect in cell.effects:
        is_before = effect.value == later.value and precedes(effect.operation, answer)
        if is_before and _is_lost(cell, effect):
            second = step_of(answer, f"{shown}, as though that had never happened")
            return Named(_lost_name(cell, effect), (step_of(effect.operation), second))
    what = "" if cell.is_effect(later) else cell.shown(later.operation, later.value)
    second = step_of(answer, f"{shown}, an older state")
    return Named(STALE_READ, (step_of(later.operation, what), second))


def _of_a_change(cell: Cell, sight: Testimony, later: Testimony) -> Named | None:
    """Name a change of a value that had been replaced: the one or the other did not count."""
    answer = sight.operation
    seen_after = {o.value for o in cell.sights if precedes(answer, o.operation)}
    steps = (step_of(later.operation), step_of(answer, ", as though that had never happened"))
    if later.value in seen_after:
        return Named(FORK, steps) if cell.set_by[answer.index] in seen_after else None
    if not cell.is_effect(later) or len(cell.setters[later.value]) > 1:
        return None
    return Named(_lost_name(cell, later), steps)


def _is_lost(cell: Cell, effect: Testimony) -> bool:
    """Return whether no answer shows an effect any more, and all that held it lack it.

    Nothing else may have hidden it. Those that held it are the node that acknowledged it and those
    that showed it; where no node is known, what was shown once may be there still.
    """
    value, operation = effect.value, effect.operation
    if value == cell.initial or len(cell.setters[value]) > 1:
        return False
    others = ((v, s) for v, found in cell.setters.items() for s in found if s is not operation)
    if not all(cell.is_over(setter, other, operation) for other, setter in others):
        return False
    seen = [sight.operation for sight in cell.sights if sight.value == value]
    lacking = [
        sight.operation
        for sight in cell.sights
        if sight.value != value
        and precedes(operation, sight.operation)
        and all(precedes(other, sight.operation) for other in seen)
    ]
    if any(answer.final for answer in lacking):
        return True
    nodes = {answer.node for answer in lacking}
    if any(other.node not in nodes for other in seen) or (seen and None in nodes):
        return False
    if operation.node is not None and operation.node not in nodes:
        return False
    everybody = {sight.operation.node for sight in cell.sights} | {operation.node}
    is_alone = everybody == nodes and len(nodes) == 1 and None not in nodes
    return shows_for_good(lacking) or (is_alone and len(lacking) > 1)


def shows_for_good(answers: Sequence[PairedOperation]) -> bool:
    """Return whether answers that lack something are enough to call it lost.

    Nodes answer for themselves; where one is not known, processes do. A final read is enough.
    """
    if any(answer.final for answer in answers):
        return True
    nodes = {answer.node for answer in answers}
    answerers = {answer.process for answer in answers} if None in nodes else nodes
    return len(answerers) >= _ANSWERERS_MIN


def _lost_name(cell: Cell, effect: Testimony) -> str:
    """Return the name of a lost effect, by whether it looked before it changed."""
    looked = any(sight.operation.index == effect.operation.index for sight in cell.sights)
    return LOST_UPDATE if looked else LOST_WRITE


def _wrongly_refused(cell: Cell, denial: Testimony, core: Collection[int]) -> Named | None:
    """Name a refusal by a value that had certainly been there all the time."""
    answer, value = denial
    others = {
        other: cell.possible_setters(other, answer)
        for other in {cell.initial, *cell.setters}
        if other != value
    }
    refusal = step_of(answer, ", although its condition held")
    if value == cell.initial and not any(others.values()):
        return Named(WRONG_REFUSAL, (refusal,))
    known = [found for found in (*cell.effects, *cell.sights) if found.value == value]
    for there in _candidates(known, answer, core):
        if all(cell.is_replaced(other, there, setters) for other, setters in others.items()):
            shown = "" if cell.is_effect(there) else cell.shown(there.operation, value)
            return Named(WRONG_REFUSAL, (step_of(there.operation, shown), refusal))
    return None


def _candidates(
    testimonies: Iterable[Testimony], answer: PairedOperation, core: Collection[int]
) -> list[Testimony]:
    """Return what was certain before an answer was asked for; the core's first, then the latest."""
    before = (found for found in testimonies if precedes(found.operation, answer))
    return sorted(before, key=lambda f: (f.operation.index not in core, -f.operation.start))


def _ended(operation: PairedOperation) -> tuple[int, int]:
    return operation.end or 0, operation.index
