"""Reads Jepsen's histories: ``history.edn``, plain log lines, and kv files in the same notation.

Lines of other processes than clients (the nemesis) and lines of a log that are no operations are
left out. Must never invent an outcome; what becomes of Jepsen's conventions is told in
``history.raw_operations``.
Sources: jepsen.util's log lines of every age, jepsen.history.Op, anishathalye/porcupine's tests.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec

from history.broken_lines import BrokenLines
from history.edn import EdnError, parse_all
from history.edn_values import EdnMap, Name, Tagged
from history.json_problems import in_words
from history.opening import NumberedLine, numbered_lines
from history.raw_operations import RawOperation
from history.records import EventType

#: ``... jepsen.util - 3<tab>:ok<tab>:cas<tab>[3 0]``, in every age of Jepsen.
LOG_LINE = re.compile(
    r"(?:^|\s)(?P<process>\d{1,18})\s+:(?P<type>invoke|ok|fail|info)\s+"
    r":(?P<f>[^\s]+)\s*(?P<rest>.*)$"
)
#: What the kv files of Porcupine's tests do; each names its key.
KV_FUNCTIONS = frozenset({"get", "put", "append"})
#: Values deeper than any history's.
_DEPTH_MAX = 100
_NUMBER_MAX = 2**63 - 1

Reader = Callable[[Path, BrokenLines], Iterator[RawOperation]]


def log_operations(file: Path, broken: BrokenLines) -> Iterator[RawOperation]:
    """The operations among the lines of a log.

    Raises:
        HistoryError: the file cannot be read, or a line is broken and none may be left out.
    """
    return _operations(file, broken, _log_operation)


def edn_operations(file: Path, broken: BrokenLines) -> Iterator[RawOperation]:
    """One map a line, alone or in one vector.

    Raises:
        HistoryError: see ``log_operations``.
    """
    return _operations(file, broken, edn_operation)


def kv_operations(file: Path, broken: BrokenLines) -> Iterator[RawOperation]:
    """One map a line: gets, puts and appends of strings, each with its key.

    Raises:
        HistoryError: see ``log_operations``.
    """
    return _operations(file, broken, _kv_operation)


def _operations(
    file: Path,
    broken: BrokenLines,
    read: Callable[[NumberedLine, str], RawOperation | None],
) -> Iterator[RawOperation]:
    for line in numbered_lines(file):
        try:
            operation = read(line, line.content.decode("utf-8").strip())
        except (EdnError, UnicodeDecodeError, msgspec.ValidationError) as error:
            # A line without an end is what a writer leaves that was killed.
            torn = "" if line.whole else ", and the file ends in it"
            broken.add(line.number, line.byte_offset, in_words(error) + torn)
            continue
        if operation is not None:
            yield operation


def _log_operation(line: NumberedLine, text: str) -> RawOperation | None:
    match = LOG_LINE.search(text)
    if match is None:
        return None
    rest = parse_all(match["rest"], _DEPTH_MAX)
    type_: EventType = msgspec.convert(match["type"], EventType)
    value, error = (*rest, None, None)[:2]
    if type_ in ("fail", "info") and error is None and match["rest"].startswith(":"):
        # The older lines have the error where the value was.
        value, error = None, value
    return RawOperation(
        line=line.number,
        byte_offset=line.byte_offset,
        process=int(match["process"]),
        type=type_,
        f=match["f"],
        value=value,
        error=None if error is None else error_name(error),
    )


def edn_operation(line: NumberedLine, text: str) -> RawOperation | None:
    """The operation of one line; None for blanks, comments and other processes than clients.

    Raises:
        EdnError: the line is broken.
    """
    if line.number == 1:
        text = text.removeprefix("[")  # a history kept as one vector, one operation a line
    text = text.removesuffix("]") if text.endswith("}]") else text
    if text in ("", "]") or text.startswith(";"):
        return None
    values = parse_all(text, _DEPTH_MAX)
    if not values:
        return None  # a comment, or left out by ``#_``
    operation = _fields(values)
    for name in ("process", "type", "f"):
        if name not in operation:
            raise EdnError(f"the map has no :{name}")
    process = operation["process"]
    if isinstance(process, Name | str):
        return None
    f = name_text(operation["f"])
    if f is None:
        raise EdnError(":f is no keyword")
    error = operation.get("error")
    return RawOperation(
        line=line.number,
        byte_offset=line.byte_offset,
        process=_whole_number(process, "process"),
        type=_event_type(operation["type"]),
        f=f,
        value=operation.get("value"),
        key=operation.get("key"),
        error=None if error is None else error_name(error),
        time=None if operation.get("time") is None else _whole_number(operation["time"], "time"),
    )


def _kv_operation(line: NumberedLine, text: str) -> RawOperation | None:
    operation = edn_operation(line, text)
    if operation is None:
        return None
    if operation.f not in KV_FUNCTIONS:
        raise EdnError(f"a kv file knows get, put and append, and no {operation.f!r}")
    if operation.key is None:
        raise EdnError("the map has no :key")
    if not isinstance(operation.value, str | None):
        raise EdnError(f"the value of a {operation.f} is no text")
    return operation


def _fields(values: list[Any]) -> dict[str, Any]:
    """The fields of an operation by their keywords."""
    if len(values) != 1:
        raise EdnError(f"expected one value, found {len(values)}")
    # Jepsen's own tag says no more than that this is an operation.
    operation = values[0].value if isinstance(values[0], Tagged) else values[0]
    if not isinstance(operation, EdnMap):
        raise EdnError("it is no map, as an operation is")
    return {
        key.text: value
        for key, value in operation.items()
        if type(key) is Name and key.kind == "keyword"
    }


def name_text(value: object) -> str | None:
    """A keyword or a text as the name that it is; None for anything else."""
    if isinstance(value, Name) and value.kind == "keyword":
        return value.text
    return value if isinstance(value, str) else None


def _event_type(name: object) -> EventType:
    try:
        return msgspec.convert(name_text(name), EventType)
    except msgspec.ValidationError as error:
        raise EdnError(f":type cannot be {(name_text(name) or name)!r}") from error


def _whole_number(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise EdnError(f":{name} is no whole number")
    if abs(value) > _NUMBER_MAX:
        raise EdnError(f":{name} is too large")
    return value


def error_name(error: object) -> str:
    """The name of an error: Jepsen's errors are keywords, or vectors that begin with one."""
    if isinstance(error, list) and error:
        return error_name(cast("list[object]", error)[0])
    told = cast("object", error)
    return name_text(told) or str(told)
