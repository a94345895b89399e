"""Events as foreign files have them, and their conversion to ours; pure.

Jepsen answers a compare-and-set refused for its precondition with ``fail``; here that is an
observation, ``ok`` with result false (design, section 4), and is turned into one. A ``fail`` that
carries another error stays a ``fail``. Jepsen's independent keys stand in the value, ``[key
value]``; they are told from values that are pairs by the invocations: a plain read is invoked with
nothing, a plain compare-and-set with ``[expected new]``. Must never invent an outcome.

A time that is a fraction is refused: cut to a whole number it would make everything concurrent. A
process may have a name, which gets a number below zero; a name in digits is that number. The
nemesis, ``nemesis`` or ``:nemesis``, is no client. Must never take two processes for one.

Sources: jepsen.client, jepsen.independent (a tuple is printed like any vector), jepsen.history.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any, Final, cast

import msgspec

from splitbrain.history.errors import BrokenLines
from splitbrain.history.identity import key_text
from splitbrain.history.records import Event, EventType

#: Times and process numbers beyond these fit into no column and come from no clock.
NUMBER_MAX: Final = 2**63 - 1
#: Whole numbers up to here are exact where a file writes them with a point.
EXACT_MAX: Final = 2**53
_DIGITS: Final = re.compile(r"0|[1-9][0-9]{0,18}")
#: Process names in the note.
_NAMES_MAX: Final = 10


class FractionError(ValueError):
    """Time with a fraction, or one that was rounded: order needs exact ones."""

    next_step: Final = (
        "Write all times as whole numbers of one small unit, such as nanoseconds, "
        "or leave all of them out: the order of the lines stands in for them"
    )


def whole_number(value: object, name: str) -> int:
    """Return a number without fraction, however the file writes it: ``7``, ``7.0``, ``7e3``.

    Raises:
        FractionError: a time has a fraction, or is too long to be exact with a point.
        ValueError: it is no number, or too large for any clock; another one than a time as above.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction):
        raise ValueError(f"its {name} is no number")  # noqa: TRY004 (a broken line, as any other)
    if isinstance(value, float | Decimal) and not isfinite(value):
        raise ValueError(f"its {name} is no finite number")
    if abs(value) > NUMBER_MAX:
        raise ValueError(f"its {name} is too large")
    number = int(value)
    if number != value or (isinstance(value, float) and abs(value) > EXACT_MAX):
        why = "is no whole number" if number != value else "is rounded"
        refusal = FractionError if name == "time" else ValueError
        raise refusal(f"its {name} is {value}, which {why}")
    return number


def is_nemesis(process: object) -> bool:
    """Return whether a process is the nemesis."""
    return isinstance(process, str) and process.removeprefix(":") == "nemesis"


class ProcessNumbers:
    """Numbers of one history's processes; the names among them count down from -1."""

    def __init__(self) -> None:
        self._by_name: dict[str, int] = {}
        self._has_negative = False

    def of(self, process: object) -> int:
        """Return the number of a process other than the nemesis.

        Raises:
            ValueError: it is neither a name nor a whole number, or one that a name could have.
        """
        name = process.removeprefix(":") if isinstance(process, str) else None
        if name is not None and not _DIGITS.fullmatch(name):
            number = self._by_name.setdefault(name, -1 - len(self._by_name))
        else:
            number = whole_number(process if name is None else int(name), "process")
            self._has_negative |= number < 0
        if self._has_negative and self._by_name:
            raise ValueError("some processes have names, and others a number below zero")
        return number

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the numbers given to named processes, in one sentence; empty without names."""
        if not self._by_name:
            return ()
        named = [f"{number} is {name}" for name, number in [*self._by_name.items()][:_NAMES_MAX]]
        more = len(self._by_name) - len(named)
        rest = f", and so on for {more:,} more" if more else ""
        return (f"Processes with a name have a number below zero: {', '.join(named)}{rest}.",)


#: Errors of a ``fail`` that mean that a compare-and-set found another value.
_REFUSALS = frozenset(
    {"precondition-failed", "did-not-succeed", "value-mismatch", "cas-failed", "not-equal"}
)
#: Foreign names of functions, and ours.
FUNCTIONS = {"compare-and-set": "cas"}
#: Length of ``[key value]`` and of ``[expected new]``.
_PAIR = 2


class RawOperation(msgspec.Struct, frozen=True):
    """Event as its file has it."""

    line: int
    byte_offset: int
    #: Number or name.
    process: int | str
    type: EventType
    f: str
    value: Any
    key: Any = None
    error: str | None = None
    time: int | None = None


def has_independent_keys(raw: Sequence[RawOperation]) -> bool:
    """Return whether the values are ``[key value]``, as the history's own invocations show.

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
                # A client that fails may leave the value out, but means its invocation.
                key = argument.get(process, (None, None))[0]
        if outcome == "invoke":
            argument[process] = (key, value)
        elif f == "cas":
            invoked = argument.get(process, (None, None))[1]
            outcome, value = judge_cas(operation, value, invoked)
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
    """Return outcome and ``[expected, new, succeeded]`` of a completed compare-and-set."""
    pair = _pair(argument)
    if pair is None:
        return raw.type, value
    if raw.type == "ok":
        # An answer with another pair is refused later, with its line.
        answer = pair if value is None else _pair(value)
        return "ok", value if answer is None else [*answer, True]
    refused = raw.type == "fail" and (
        raw.error in _REFUSALS or (raw.error is None and repr(value) == repr(argument))
    )
    return ("ok", [*pair, False]) if refused else (raw.type, value)
