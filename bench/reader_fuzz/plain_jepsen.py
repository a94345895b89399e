"""Jepsen's conventions: keys that stand in the values, and compare-and-sets that are refused.

Source: docs/history-format.md, "Jepsen".
"""

from fractions import Fraction
from typing import NamedTuple

from bench.reader_fuzz.plain_history import RulesBroken
from bench.reader_fuzz.plain_values import Plain, boolean, items_of, sequence

#: Errors that say that a compare-and-set looked and found another value.
_REFUSALS = frozenset(
    {"precondition-failed", "did-not-succeed", "value-mismatch", "cas-failed", "not-equal"}
)
_PAIR = 2


class Line(NamedTuple):
    """An event before it is known how its file tells keys and times."""

    process: Plain
    type: str
    f: str
    key: Plain
    value: Plain
    time: Fraction | None
    #: Its ``index``.
    number: int | None = None
    error: str | None = None
    node: str | None = None
    position: tuple[int, int] | None = None
    final: bool = False


def with_meaning(lines: list[Line], history_format: str) -> list[Line]:
    """Jepsen's conventions: keys in the values, refused compare-and-sets as ``fail``."""
    if history_format == "jsonl":
        return lines
    lines = [line._replace(f="cas") if line.f == "compare-and-set" else line for line in lines]
    lines = _with_keys(lines) if _are_keyed(lines) else lines
    invoked: dict[Plain, Plain] = {}
    meant: list[Line] = []
    for line in lines:
        if line.type == "invoke":
            invoked[line.process] = line.value
        meant.append(_observed(line, invoked.get(line.process)) if line.f == "cas" else line)
    return meant


def _are_keyed(lines: list[Line]) -> bool:
    shown = False
    for line in lines:
        if line.type == "invoke" and line.f in ("read", "cas"):
            pair = items_of(line.value)
            if line.key is not None or pair is None or len(pair) != _PAIR:
                return False
            inner = items_of(pair[1])
            if pair[1] is not None if line.f == "read" else inner is None or len(inner) != _PAIR:
                return False
            shown = True
    return shown


def _with_keys(lines: list[Line]) -> list[Line]:
    keys: dict[Plain, Plain] = {}
    meant: list[Line] = []
    for line in lines:
        pair = items_of(line.value)
        if pair is not None and len(pair) == _PAIR:
            key, value = pair
        elif line.type in ("invoke", "ok"):
            raise RulesBroken("a value without a key among those that have one")
        else:
            key, value = keys.get(line.process), line.value
        if line.type == "invoke":
            keys[line.process] = key
        meant.append(line._replace(key=key, value=value))
    return meant


def _observed(line: Line, argument: Plain) -> Line:
    """Return a completed compare-and-set as what it says: done, refused, or not known."""
    pair = items_of(argument)
    if line.type not in ("ok", "fail") or pair is None or len(pair) != _PAIR:
        return line
    if line.type == "ok":
        answer = pair if line.value is None else items_of(line.value)
        if answer is None or answer[:_PAIR] != pair:
            raise RulesBroken("a compare-and-set that answers to another question")
        return line._replace(value=sequence((*pair, *(answer[_PAIR:] or (boolean(True),)))))
    if line.error in _REFUSALS or (line.error is None and line.value == argument):
        return line._replace(type="ok", value=sequence((*pair, boolean(False))))
    return line
