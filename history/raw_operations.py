"""Events as the files of others have them, and what becomes of them here; pure.

Jepsen answers a compare-and-set refused for its precondition with ``fail``; here that is an
observation, ``ok`` with result false (design, section 4), and is turned into one. A ``fail`` that
carries another error stays a ``fail``. Jepsen's independent keys stand in the value, ``[key
value]``; they are told from values that are pairs by the invocations: a plain read is invoked with
nothing, a plain compare-and-set with ``[expected new]``. Must never invent an outcome.
Sources: jepsen.client, jepsen.independent (a tuple is printed like any vector), jepsen.history.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import msgspec

from splitbrain.history.broken_lines import BrokenLines
from splitbrain.history.identity import key_text
from splitbrain.history.processes import ProcessNumbers
from splitbrain.history.records import Event, EventType

#: Errors by which a ``fail`` of a compare-and-set says that it looked and found another value.
_REFUSALS = frozenset(
    {"precondition-failed", "did-not-succeed", "value-mismatch", "cas-failed", "not-equal"}
)
#: Names in the files of others for what we call by another.
FUNCTIONS = {"compare-and-set": "cas"}
#: Parts of ``[key value]`` and of ``[expected new]``.
_PAIR = 2


class RawOperation(msgspec.Struct, frozen=True):
    """One event as its file has it."""

    line: int
    byte_offset: int
    #: Its number or name.
    process: int | str
    type: EventType
    f: str
    value: Any
    key: Any = None
    error: str | None = None
    time: int | None = None


def has_independent_keys(raw: Sequence[RawOperation]) -> bool:
    """Whether the values are ``[key value]``, as the history's own invocations show.

    Every read must then be invoked with ``[key nil]`` and every compare-and-set with ``[key
    [expected new]]``, and there must be one of them.
    """
    found = False
    for operation in raw:
        f = FUNCTIONS.get(operation.f, operation.f)
        if operation.type != "invoke" or f not in ("read", "cas"):
            continue
        if operation.key is not None:
            return False
        pair = _pair(operation.value)
        if pair is None or (pair[1] is not None if f == "read" else _pair(pair[1]) is None):
            return False
        found = True
    return found


def to_events(
    raw: Iterable[RawOperation], broken: BrokenLines, processes: ProcessNumbers
) -> Iterator[Event]:
    """Number the events, take keys out of pairs, turn refused compare-and-sets to observations.

    Args:
        raw: the events as the file has them.
        broken: what becomes of those that make no sense.
        processes: gives a number to each process.

    Raises:
        HistoryError: an event makes no sense among the others, and none may be left out.
    """
    everything = list(raw)
    independent = has_independent_keys(everything)
    timed = bool(everything) and everything[0].time is not None
    argument: dict[int, tuple[Any, Any]] = {}
    for index, operation in enumerate(everything):
        if timed != (operation.time is not None):
            problem = "only some of the operations have a time"
            broken.add(operation.line, operation.byte_offset, problem)
            continue
        try:
            process = processes.of(operation.process)
        except ValueError as error:
            broken.add_error(operation.line, operation.byte_offset, error)
            continue
        f = FUNCTIONS.get(operation.f, operation.f)
        outcome, key, value = operation.type, operation.key, operation.value
        if independent:
            pair = _pair(value)
            if pair is not None:
                key, value = pair
            elif outcome in ("invoke", "ok"):
                problem = "its value is no [key value], as the others are"
                broken.add(operation.line, operation.byte_offset, problem)
                continue
            else:
                # A client that fails may leave the value out, but means what it invoked.
                key = argument.get(process, (None, None))[0]
        if outcome == "invoke":
            argument[process] = (key, value)
        elif f == "cas":
            asked = argument.get(process, (None, None))[1]
            outcome, value = judge_cas(operation, value, asked)
        yield Event(
            index=index,
            time=index if operation.time is None else operation.time,
            process=process,
            type=outcome,
            f=f,
            key=key_text(key),
            value=value,
            error=operation.error,
        )


def _pair(value: object) -> list[Any] | None:
    if not isinstance(value, list):
        return None
    several = cast("list[Any]", value)
    return several if len(several) == _PAIR else None


def judge_cas(raw: RawOperation, value: Any, argument: object) -> tuple[EventType, Any]:
    """Outcome and ``[expected, new, succeeded]`` of a completed compare-and-set."""
    pair = _pair(argument)
    if pair is None:
        return raw.type, value
    if raw.type == "ok":
        # An answer that is another pair is refused later, with its line.
        told = pair if value is None else _pair(value)
        return "ok", value if told is None else [*told, True]
    refused = raw.type == "fail" and (
        raw.error in _REFUSALS or (raw.error is None and repr(value) == repr(argument))
    )
    return ("ok", [*pair, False]) if refused else (raw.type, value)
