"""Reader of Jepsen's histories: ``history.edn``, plain log lines, kv files in the same notation.

Lines of the nemesis and lines of a log that are no operations are left out. So is a last line
without line feed that a longer one may begin with: ``:value 12`` of ``:value 123``. Must never
invent an outcome; ``history.raw_operations`` converts Jepsen's conventions. Sources: jepsen.util's
log lines of every age, jepsen.history.Op, anishathalye/porcupine's tests.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from splitbrain.history.edn import EdnError, parse_all
from splitbrain.history.edn_values import EdnMap, Name, Tagged, size_of
from splitbrain.history.errors import BrokenLines
from splitbrain.history.formats import KV_FUNCTIONS, LOG_LINE, Format
from splitbrain.history.json_problems import DEPTH_MAX
from splitbrain.history.opening import NumberedLine, numbered_lines
from splitbrain.history.raw_operations import RawOperation, is_nemesis, whole_number
from splitbrain.history.records import EventType

#: First line of a history that is one vector: an operation or a remark behind the bracket.
_OPENS_LIST: Final = re.compile(r"\[[\s,]*[{#;]")


def read_operations(
    file: Path, history_format: Format, broken: BrokenLines
) -> Iterator[RawOperation]:
    """Yield the operations of a file, of one map a line or among the lines of a log.

    Raises:
        HistoryError: the file cannot be read, or a line is broken and none may be left out.
    """
    readers = {"edn": edn_operation, "jepsen-log": _log_operation, "kv": _kv_operation}
    read = readers[history_format]
    is_log = read is _log_operation
    in_list = False
    for line in numbered_lines(file):
        try:
            text = line.content.decode("utf-8").strip()
            if not is_log and not in_list:
                _refuse_end(line, text)
            # Also where the first operation of the list is broken.
            in_list |= line.number == 1 and _OPENS_LIST.match(text) is not None
            in_list |= text.rstrip(" ,") == "["
            in_list &= not text.endswith(("}]", "} ]")) and text != "]"
            operation = read(line, text)
        except ValueError as error:
            if not line.whole and isinstance(error, EdnError | UnicodeDecodeError):
                broken.tear(len(line.content))
            else:
                broken.add_error(line.number, line.byte_offset, error)
            continue
        if is_log and not line.whole and not _is_whole_log_line(operation, text):
            broken.tear(len(line.content))
        elif operation is not None:
            yield operation
    if in_list and broken.torn_bytes is None:
        # It was cut between two lines.
        broken.tear(0)


def _refuse_end(line: NumberedLine, text: str) -> None:
    """Raise ValueError for a line that ends a list which never began."""
    if text == "]" or (text.endswith("}]") and not (line.number == 1 and text.startswith("["))):
        raise ValueError("it ends a list of operations that never began")


def _is_whole_log_line(operation: RawOperation | None, text: str) -> bool:
    """Return whether a last line without line feed is whole: nothing can follow.

    An error may stand behind ``fail`` or ``info``.
    """
    if operation is None:
        return not text
    return operation.type in ("invoke", "ok") and text.endswith(("]", "}", ")", '"'))


def _log_operation(line: NumberedLine, text: str) -> RawOperation | None:
    match = LOG_LINE.search(text)
    if match is None:
        return None
    process = match["process"] or match["name"] or match["tabbed"]
    if is_nemesis(process):
        return None
    rest = parse_all(match["rest"], DEPTH_MAX)
    type_: EventType = msgspec.convert(match["type"], EventType)
    value, error = (*rest, None, None)[:2]
    if type_ in ("fail", "info") and error is None and match["rest"].startswith(":"):
        # The older lines have the error where the value was.
        value, error = None, value
    return RawOperation(
        line=line.number,
        byte_offset=line.byte_offset,
        process=process.strip('"'),
        type=type_,
        f=match["f"],
        value=value,
        error=None if error is None else error_name(error),
    )


def edn_operation(line: NumberedLine, text: str) -> RawOperation | None:
    """Return the operation of one line; None for blanks, comments and the nemesis.

    Raises:
        EdnError: the text is no EDN, or no map.
        ValueError: the map is no operation.
    """
    if line.number == 1:
        text = text.removeprefix("[")  # a history kept as one vector, one operation a line
    text = text.removesuffix("]") if text.endswith("}]") else text
    if text in ("", "]") or text.startswith(";"):
        return None
    values = parse_all(text, DEPTH_MAX)
    if not values:
        return None  # a comment, or left out by ``#_``
    operation = _fields(values)
    for name in ("process", "type", "f"):
        if name not in operation:
            raise ValueError(f"the map has no :{name}")
    process = operation["process"]
    if isinstance(process, Name) and process.kind != "character":
        process = process.text
    if is_nemesis(process):
        return None
    f = name_text(operation["f"])
    if f is None:
        raise ValueError(":f is no keyword")
    error, time = operation.get("error"), operation.get("time")
    return RawOperation(
        line=line.number,
        byte_offset=line.byte_offset,
        process=process if isinstance(process, str) else whole_number(size_of(process), "process"),
        type=_event_type(operation["type"]),
        f=f,
        value=operation.get("value"),
        key=operation.get("key"),
        error=None if error is None else error_name(error),
        time=None if time is None else whole_number(size_of(time), "time"),
    )


def _kv_operation(line: NumberedLine, text: str) -> RawOperation | None:
    operation = edn_operation(line, text)
    if operation is None:
        return None
    if operation.f not in KV_FUNCTIONS:
        raise ValueError(f"a kv file knows get, put and append, and no {operation.f!r}")
    if operation.key is None:
        raise ValueError("the map has no :key")
    if not isinstance(operation.value, str | None):
        raise ValueError(f"the value of a {operation.f} is no text")  # noqa: TRY004 (as above)
    return operation


def _fields(values: list[Any]) -> dict[str, Any]:
    if len(values) != 1:
        raise EdnError(f"expected one value, found {len(values)}")
    # Jepsen's own tag only marks an operation.
    operation = values[0].value if isinstance(values[0], Tagged) else values[0]
    if not isinstance(operation, EdnMap):
        raise EdnError("it is no map, as an operation is")
    return {
        key.text: value
        for key, value in operation.items()
        if type(key) is Name and key.kind == "keyword"
    }


def name_text(value: object) -> str | None:
    """Return the name in a keyword or a text; None for anything else."""
    if isinstance(value, Name) and value.kind == "keyword":
        return value.text
    return value if isinstance(value, str) else None


def _event_type(name: object) -> EventType:
    try:
        return msgspec.convert(name_text(name), EventType)
    except msgspec.ValidationError as error:
        raise ValueError(f":type cannot be {(name_text(name) or name)!r}") from error


def error_name(error: object) -> str:
    """Return an error's name: Jepsen's errors are keywords, or vectors that begin with one."""
    if isinstance(error, list) and error:
        return error_name(cast("list[object]", error)[0])
    other = cast("object", error)
    return name_text(other) or str(other)
