"""Events and operations as the plain readers give them, and the rules of a history.

Source: docs/history-format.md: a process runs one operation at a time; ``info`` leaves it open
for good, whatever its process does next.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from bench.reader_fuzz.plain_values import Plain, PlainError, items_of

_PAIR = 2
_ANSWER = 3
#: Functions that answer with their argument.
_ECHOING = frozenset({"write", "add", "remove", "put", "append"})


class PlainEvent(NamedTuple):
    """One event of a file."""

    process: Plain
    type: str
    f: str
    key: Plain
    value: Plain
    #: Exact; where the file has no times, the place of the event.
    time: Fraction
    error: str | None = None
    node: str | None = None
    position: tuple[int, int] | None = None
    final: bool = False


class PlainOperation(NamedTuple):
    """An invocation with what came of it."""

    process: Plain
    f: str
    key: Plain
    argument: Plain
    #: None unless ``type`` is ``ok``.
    result: Plain
    type: str
    start: Fraction
    #: None for an operation that was never answered, or by ``info``.
    end: Fraction | None
    error: str | None = None
    node: str | None = None
    position: tuple[int, int] | None = None
    final: bool = False


class Reading(NamedTuple):
    """A file as the plain reader reads it."""

    operations: list[PlainOperation]
    #: Whether the file ends in the middle of something, which was left out.
    torn: bool = False
    #: Why there is no history here; None where there is one.
    refused: str | None = None
    #: Lines that are none of the format's, where they were to be left out.
    broken: int = 0
    #: Why a reader may refuse the file, or say that it is not sure of it: what is rare or silent.
    doubts: frozenset[str] = frozenset()


class RulesBroken(PlainError):
    """Events that form no history."""


def paired(events: Iterable[PlainEvent], doubts: set[str]) -> list[PlainOperation]:
    """Operations by their invocation.

    Args:
        events: in the order of the file.
        doubts: what is rare about them is added.

    Raises:
        RulesBroken: the events form no history.
    """
    operations: list[PlainOperation] = []
    at_work: dict[Plain, int] = {}
    last_end: dict[Plain, Fraction] = {}
    latest: dict[Plain, Fraction] = {}
    for event in events:
        if event.type == "invoke":
            if event.process in at_work:
                raise RulesBroken("a process does two things at a time")
            if event.time < last_end.get(event.process, event.time):
                raise RulesBroken("a process goes on before its last operation was over")
            if event.time < latest.get(event.process, event.time):
                doubts.add("a process that goes on before its info")
            at_work[event.process] = len(operations)
            operations.append(_opened(event))
            continue
        if event.process not in at_work:
            raise RulesBroken("an answer to nothing")
        place = at_work.pop(event.process)
        operations[place] = _completed(operations[place], event)
        if event.type != "info":
            last_end[event.process] = event.time
        latest[event.process] = event.time
    for operation in operations:
        refuse_nonsense(operation)
        if operation.f in _ECHOING and operation.result not in (None, operation.argument):
            doubts.add("an answer that is no echo")
    return operations


def _opened(event: PlainEvent) -> PlainOperation:
    return PlainOperation(
        process=event.process,
        f=event.f,
        key=event.key,
        argument=event.value,
        result=None,
        type="info",
        start=event.time,
        end=None,
        error="never-completed",
        node=event.node,
        final=event.final,
    )


def _completed(invocation: PlainOperation, event: PlainEvent) -> PlainOperation:
    if event.f != invocation.f or event.key not in (None, invocation.key):
        raise RulesBroken("an answer to something else")
    if event.time < invocation.start:
        raise RulesBroken("an answer before its question")
    return invocation._replace(
        result=event.value if event.type == "ok" else None,
        type=event.type,
        end=None if event.type == "info" else event.time,
        error=event.error,
        node=event.node or invocation.node or None,
        position=event.position,
        final=invocation.final or event.final,
    )


def refuse_nonsense(operation: PlainOperation) -> None:
    """Raise RulesBroken where an operation that may have happened says what makes no sense."""
    if operation.type == "fail":
        return
    answer = operation.result
    if operation.f == "contains" and operation.type == "ok" and not _is_boolean(answer):
        raise RulesBroken("an answer to contains that is neither true nor false")
    if operation.f != "cas":
        return
    pair, items = items_of(operation.argument), items_of(answer)
    if pair is None or len(pair) != _PAIR:
        raise RulesBroken("a compare-and-set that is asked no pair")
    if answer is None:
        return
    if items is None or len(items) not in (_PAIR, _ANSWER) or items[:_PAIR] != pair:
        raise RulesBroken("a compare-and-set that answers to another question")
    if len(items) == _ANSWER and not _is_boolean(items[_PAIR]):
        raise RulesBroken("a compare-and-set that answers neither true nor false")


def _is_boolean(value: Plain) -> bool:
    return value is not None and value[0] == "boolean"


def refused(why: str, doubts: Iterable[str] = ()) -> Reading:
    """Return a file that holds no history."""
    return Reading([], refused=why, doubts=frozenset(doubts))


def reading_of(
    events: Sequence[PlainEvent], *, torn: bool, broken: int, doubts: Iterable[str]
) -> Reading:
    """Return the operations of events, or why there are none."""
    known = set(doubts)
    processes = {event.process for event in events}
    below_zero = any(kind in ("number", "whole") and name < 0 for kind, name in processes)
    if below_zero and any(kind not in ("number", "whole") for kind, _ in processes):
        known.add("names and numbers below zero")
    try:
        operations = paired(events, known)
    except RulesBroken as error:
        return refused(str(error), doubts)
    return Reading(operations, torn=torn, broken=broken, doubts=frozenset(known))
