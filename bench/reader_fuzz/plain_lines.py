"""Plain readers of the formats of one event a line: JSON lines, EDN, Jepsen's log, kv.

Source: docs/history-format.md and the formats that it names. A last line without a line feed that
is no whole event is torn: it is left out and said. In a log every such line is, for nobody can see
whether a value goes on. The module is longer than 400 lines because every such format is here.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any, cast

from bench.reader_fuzz.plain_edn import read_edn
from bench.reader_fuzz.plain_history import (
    PlainEvent,
    Reading,
    RulesBroken,
    reading_of,
    refused,
)
from bench.reader_fuzz.plain_jepsen import Line, with_meaning
from bench.reader_fuzz.plain_json import Members, Number, has_doubles, plain_of, read_json
from bench.reader_fuzz.plain_values import Plain, PlainError, depth_of, digits_of, items_of

_TYPES = ("invoke", "ok", "fail", "info")
_LOG_LINE = re.compile(
    r"(?:^|\s)(?P<process>\S+)\s+:(?P<type>invoke|ok|fail|info)\s+:(?P<f>\S+)(?P<rest>.*)$"
)
_LARGE = 2**63
_DEEP = 30
_DIGITS = 300
_PAIR = 2


class _File:
    """The state of a reader between two lines of a file."""

    def __init__(self) -> None:
        self.doubts: set[str] = set()
        #: Whether a vector was opened that holds the whole history.
        self.in_vector = False

    def is_whole(self, line: bytes) -> bool:
        """Whether a last line without a line feed is an event that nothing is missing of."""
        raise NotImplementedError

    def event(self, line: bytes, *, first: bool) -> Line | None:
        """Return the event of a line; None for a line without one.

        Raises:
            PlainError: it is no line of the format.
        """
        raise NotImplementedError

    def doubt(self, why: str, *, when: bool) -> None:
        """Note that a reader may refuse what is so."""
        if when:
            self.doubts.add(why)

    def doubt_of(self, line: Line) -> None:
        """Note what is rare about an event."""
        names = [line.process, line.key, line.value]
        self.doubt("nested deeply", when=any(depth_of(name) > _DEEP for name in names))
        self.doubt("maps with odd keys", when=any(map(_has_odd_map, names)))
        self.doubt("numbers of many digits", when=any(digits_of(n) > _DIGITS for n in names))
        times = [line.time or 0, line.number or 0]
        self.doubt("numbers beyond 64 bits", when=any(abs(time) >= _LARGE for time in times))
        self.doubt("fractions of time", when=line.time is not None and line.time % 1 != 0)
        is_number = line.process[0] in ("number", "whole")
        self.doubt("numbers beyond 64 bits", when=is_number and abs(line.process[1]) >= _LARGE)
        self.doubt(
            "a name of digits", when=line.process[0] == "text" and _is_digits(line.process[1])
        )
        self.doubt("an odd name of a process", when=line.process == ("text", ""))
        self.doubt(
            "a compare-and-set without an answer",
            when=line.f == "cas" and line.type == "ok" and line.value is None,
        )


class JsonLines(_File):
    """JSON lines.

    Args:
        apart: see ``plain_values.number``.
    """

    def __init__(self, *, apart: bool) -> None:
        super().__init__()
        self._apart = apart

    def is_whole(self, line: bytes) -> bool:
        """An object is closed."""
        try:
            fields = read_json(line)
            # A number that is too long may be taken for one that is cut.
            plain_of(fields)
        except PlainError:
            self.doubt("a torn line", when=line.rstrip().endswith(b"}"))
            return False
        return True

    def event(self, line: bytes, *, first: bool) -> Line | None:
        """Return the event of an object."""
        if not line.strip():
            return None
        fields = read_json(line)
        if not isinstance(fields, Members):
            raise PlainError("no object")
        self.doubt("a field twice", when=fields.repeats)
        values = (fields.get("key"), fields.get("value"))
        self.doubt("numbers of two spellings", when=any(map(has_doubles, values)))
        process = _process(plain_of(fields.get("process")))
        named = {name: fields.get(name) for name in ("type", "f", "node", "final", "index")}
        if named["type"] not in _TYPES or not isinstance(named["f"], str):
            raise PlainError("an event without type or function")
        error = plain_of(fields.get("error"))
        if not isinstance(named["node"], str | None) or named["final"] not in (None, True, False):
            raise PlainError("a field of another type")
        self.doubt("final is null", when=named["final"] is None and "final" in dict(fields.pairs))
        found = Line(
            process,
            named["type"],
            named["f"],
            plain_of(fields.get("key"), apart=self._apart),
            plain_of(fields.get("value"), apart=self._apart),
            _exact(fields.get("time")),
            _whole(named["index"]),
            error[1] if error is not None and error[0] == "text" else None if not error else "?",
            named["node"],
            _position(fields.get("position")),
            bool(named["final"]),
        )
        return None if process in _NEMESIS else found


class EdnLines(_File):
    """Maps of EDN, one a line, alone or in one vector."""

    def is_whole(self, line: bytes) -> bool:
        """A map is closed."""
        try:
            text = line.decode("utf-8")
            # Of a remark nothing is missing that means anything.
            values = read_edn(self._inside(text))
            return text.strip() == "]" or len(values) > 0 or ";" in text
        except ValueError:
            return False

    def _inside(self, text: str) -> str:
        """Return a line without the brackets of the vector that the whole history stands in."""
        text = text.strip().removeprefix("[") if text.strip().startswith("[") else text.strip()
        return text.removesuffix("]") if text.endswith(("}]", "} ]")) or text == "]" else text

    def event(self, line: bytes, *, first: bool) -> Line | None:
        """Return the event of a map."""
        text = line.decode("utf-8")
        if first and text.strip().startswith("["):
            self.in_vector = True
        if self.in_vector and not first and text.strip() == "[":
            raise PlainError("a list in the list")
        if self.in_vector:
            inner = self._inside(text)
            self.in_vector = not (inner != text.strip() and text.strip().endswith("]"))
            text = inner
        values = read_edn(text)
        if not values:
            return None
        if len(values) > 1:
            raise PlainError("two values in one line")
        fields = values[0]
        while fields is not None and fields[0] == "tagged":
            fields = fields[2]
        if fields is None or fields[0] != "map":
            raise PlainError("no map")
        return self._event(dict(fields[1]))

    def _event(self, fields: dict[Plain, Plain]) -> Line | None:
        named = {
            name: fields.get(("keyword", name))
            for name in ("process", "type", "f", "key", "value", "time", "error")
        }
        process = _process(named["process"])
        if process in _NEMESIS:
            lacks = named["type"] is None or named["f"] is None
            self.doubt("a nemesis that says not what it does", when=lacks)
            return None
        type_, f = _keyword(named["type"]), _keyword(named["f"])
        if type_ not in _TYPES:
            raise PlainError("an event without type")
        return Line(
            process,
            type_,
            f,
            named["key"],
            named["value"],
            _time(named["time"]),
            error=_error(named["error"]),
        )


class KvLines(EdnLines):
    """Maps of gets, puts and appends of texts."""

    def _event(self, fields: dict[Plain, Plain]) -> Line | None:
        found = super()._event(fields)
        if found is None:
            return None
        if found.f not in ("get", "put", "append") or found.key is None:
            raise PlainError("no line of a kv file")
        if found.value is not None and found.value[0] != "text":
            raise PlainError("a value that is no text")
        return found


class LogLines(_File):
    """Lines of a log, among which are operations."""

    def is_whole(self, line: bytes) -> bool:
        """Behind a bracket or a quote no value goes on; behind a failure an error may stand."""
        found = _LOG_LINE.search(line.decode("utf-8", errors="replace"))
        if found is None or found["type"] not in ("invoke", "ok"):
            return False
        if not _begins_a_message(found):
            return False
        try:
            return bool(read_edn(found["rest"])) and line.rstrip().endswith(
                (b"]", b"}", b")", b'"')
            )
        except PlainError:
            return False

    def event(self, line: bytes, *, first: bool) -> Line | None:
        """Return the event of a line, None for one that is no operation."""
        found = _LOG_LINE.search(line.decode("utf-8"))
        if found is None or found["process"] == ":nemesis" or not _begins_a_message(found):
            return None
        rest = read_edn(found["rest"])
        value, error = (*rest, None, None)[:2]
        is_keyword = found["rest"].strip().startswith(":")
        if found["type"] in ("fail", "info") and len(rest) == 1 and is_keyword:
            value, error = None, value
        return Line(
            _logged(found["process"]),
            found["type"],
            found["f"],
            None,
            value,
            None,
            error=_error(error),
        )


_NEMESIS = frozenset((kind, "nemesis") for kind in ("text", "keyword", "symbol")) | {
    ("text", ":nemesis")
}
_FORMATS: dict[str, Callable[[], _File]] = {
    "edn": EdnLines,
    "kv": KvLines,
    "jepsen-log": LogLines,
}


def read_plainly(
    content: bytes, history_format: str, *, skip_broken: bool = False, apart: bool = False
) -> Reading:
    """Return the operations of a file that is not packed.

    Args:
        content: the file.
        history_format: one of ``jsonl``, ``edn``, ``kv``, ``jepsen-log``.
        skip_broken: leave out and count lines that are none of the format's.
        apart: see ``plain_values.number``.
    """
    is_json = history_format == "jsonl"
    file = JsonLines(apart=apart) if is_json else _FORMATS[history_format]()
    lines = content.split(b"\n")
    last = lines.pop()
    torn = bool(last.strip()) and not file.is_whole(last)
    # Leaving out and refusing are both safe.
    file.doubt("a torn line", when=torn and history_format in ("edn", "kv"))
    if not torn and last:
        lines.append(last)
    found: list[Line] = []
    broken = 0
    for number, line in enumerate(lines):
        try:
            event = file.event(line, first=number == 0)
        except (PlainError, UnicodeDecodeError, ValueError) as error:
            if file.in_vector and not any(map(bytes.strip, lines[number + 1 :])):
                # The vector is never closed either: it was cut here. A damaged bracket looks alike.
                file.doubt("a torn line", when=line.rstrip().endswith(b"]"))
                torn = True
                break
            if not skip_broken:
                return refused(f"line {number + 1}: {error}", file.doubts)
            broken += 1
            continue
        if event is not None:
            file.doubt_of(event)
            found.append(event)
    try:
        events = _with_order(with_meaning(found, history_format))
    except RulesBroken as error:
        return refused(str(error), file.doubts)
    return reading_of(events, torn=torn or file.in_vector, broken=broken, doubts=file.doubts)


def _with_order(lines: list[Line]) -> list[PlainEvent]:
    """Events with their times; where there are none, the order of the lines."""
    for name in ("time", "number"):
        if len({getattr(line, name) is None for line in lines}) > 1:
            raise RulesBroken(f"only some lines have a {name}")
    indexes = [line.number for line in lines if line.number is not None]
    if any(later <= earlier for earlier, later in pairwise(indexes)):
        raise RulesBroken("the index does not grow")
    return [
        PlainEvent(
            line.process,
            line.type,
            line.f,
            line.key,
            line.value,
            Fraction(place) if line.time is None else line.time,
            line.error,
            line.node,
            line.position,
            line.final,
        )
        for place, line in enumerate(lines)
    ]


def _begins_a_message(found: re.Match[str]) -> bool:
    """Names of processes stand there alone; numbers may stand behind other words."""
    before = found.string[: found.start("process")].rstrip()
    is_begin = not before or before.endswith(":") or re.search(r"\s-$", before) is not None
    return is_begin or re.fullmatch(r"\d+", found["process"]) is not None


def _logged(process: str) -> Plain:
    if process.isascii() and process.isdigit():
        return ("whole", int(process))
    return ("keyword", process[1:]) if process.startswith(":") else ("symbol", process)


def _is_digits(name: str) -> bool:
    return name.lstrip("+-").isdigit()


def _process(value: Plain) -> Plain:
    if value is not None and value[0] in ("double", "decimal") and _time(value) == int(value[1]):
        return ("whole", int(value[1]))
    if value is None or value[0] not in ("text", "number", "whole", "keyword", "symbol"):
        raise PlainError("no process")
    if value[0] == "number" and value[1] % 1 != 0:
        raise PlainError("a process that is half a number")
    return value


def _exact(value: Any) -> Fraction | None:
    if value is None:
        return None
    if not isinstance(value, Number):
        raise PlainError("a time that is no number")
    return value.exact


def _whole(value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, Number) or not value.digits.lstrip("-").isdigit():
        raise PlainError("an index that is no whole number")
    return int(value.digits)


def _position(value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    parts: Any = [Number("0"), value] if isinstance(value, Number) else value
    whole = [_whole(part) for part in cast("list[Any]", parts)] if isinstance(parts, list) else []
    if len(whole) != _PAIR or None in whole:
        raise PlainError("no position")
    return (whole[0] or 0, whole[1] or 0)


def _time(value: Plain) -> Fraction | None:
    if value is None:
        return None
    if value[0] not in ("whole", "double", "decimal"):
        raise PlainError("a time that is no number")
    try:
        return Fraction(value[1])
    except (ValueError, OverflowError) as error:
        raise PlainError("a time that is no number") from error


def _keyword(value: Plain) -> str:
    if value is None or value[0] != "keyword":
        raise PlainError("no keyword")
    return value[1]


def _error(value: Plain) -> str | None:
    """Return the name of an error; ``?`` where it has none that is plain."""
    first = items_of(value)
    named = first[0] if first else value
    if named is None:
        return None
    return named[1] if named[0] in ("keyword", "text") else "?"


def _has_odd_map(value: Plain) -> bool:
    """Whether a map in it has keys that are neither texts nor keywords."""
    if value is None or value[0] not in ("list", "set", "map", "tagged"):
        return False
    if value[0] == "map":
        return any(
            key is None or key[0] not in ("text", "keyword") or _has_odd_map(part)
            for key, part in value[1]
        )
    return any(map(_has_odd_map, value[1] if value[0] != "tagged" else [value[2]]))
