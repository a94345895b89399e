"""Loads histories of any origin: ours, Jepsen's logs and ``history.edn``, Porcupine's kv files.

Jepsen answers a compare-and-set refused for its precondition with ``fail``; here that is an
observation, ``ok`` with result false (design, section 4), and is turned into one. A ``fail`` that
carries another error stays a ``fail``. Must never invent an outcome.
Sources: jepsen.util's log lines, jepsen.history.Op, anishathalye/porcupine's test data.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, cast, get_args

import msgspec

from contracts.errors import UsageError
from history.edn import EdnError, parse, parse_all
from history.errors import HistoryError
from history.json_problems import in_words
from history.reader import BrokenLine, HistoryReader
from history.records import Event, EventType
from history.run_folder import RunFolder

Format = Literal["jsonl", "edn", "jepsen-log"]

#: ``... jepsen.util - 3<tab>:ok<tab>:cas<tab>[3 0]``, in every age of Jepsen.
_LOG_LINE = re.compile(
    r"(?:^|\s)(?P<process>\d+)\s+:(?P<type>invoke|ok|fail|info)\s+:(?P<f>[^\s]+)\s*(?P<rest>.*)$"
)
#: Errors by which a ``fail`` of a compare-and-set says that it looked and found another value.
_REFUSALS = frozenset(
    {"precondition-failed", "did-not-succeed", "value-mismatch", "cas-failed", "not-equal"}
)
#: Names in the files of others for what we call by another.
_FUNCTIONS = {"compare-and-set": "cas"}
_GUESS_BYTES = 1 << 16
#: What files begin with that hold a history and are not one, and what to do about it.
_WRAPPED = (
    (b"\x1f\x8b", "it is compressed with gzip", "Unpack it first: gunzip FILE"),
    (b"PK\x03\x04", "it is a zip archive", "Unpack it first: unzip FILE"),
    (b"(\xb5/\xfd", "it is compressed with zstd", "Unpack it first: unzstd FILE"),
    (b"PAR1", "it is a Parquet table", "Name the history.jsonl that it was made from"),
    (b"\xff\xfe", "it is UTF-16", "Save it as UTF-8"),
    (b"\xfe\xff", "it is UTF-16", "Save it as UTF-8"),
    (b"\xef\xbb\xbf", "it begins with a byte order mark", "Save it as UTF-8 without one"),
)


class LoadedHistory(msgspec.Struct, frozen=True):
    """Events of one history and what was wrong with its file."""

    path: Path
    format: Format
    events: list[Event]
    #: Length of a torn last line that was dropped, None if there was none.
    torn_bytes: int | None = None
    #: Lines that were skipped, where skipping was asked for.
    broken: tuple[BrokenLine, ...] = ()


def load(
    path: Path, history_format: str | None = None, *, skip_broken: bool = False
) -> LoadedHistory:
    """Read a run folder or a bare history into memory.

    Args:
        path: a run folder, or a file.
        history_format: one of ``Format``; guessed from the file's beginning where None.
        skip_broken: see ``HistoryReader``; for JSON lines only.

    Raises:
        HistoryError: no such file, unknown format, or a broken history.
    """
    file = RunFolder(path).history if path.is_dir() else path
    if path.is_dir() and not file.is_file():
        raise HistoryError(
            str(path), f"the folder holds no {file.name}", "Name a run folder or a history file"
        )
    chosen = _known_format(history_format) if history_format else guess_format(file)
    if chosen == "jsonl":
        reader = HistoryReader(file, skip_broken=skip_broken)
        events = list(reader)
        return LoadedHistory(file, chosen, events, reader.torn_bytes, tuple(reader.broken))
    raw = _edn_operations(file) if chosen == "edn" else _log_operations(file)
    return LoadedHistory(file, chosen, list(_to_events(raw, file)))


def guess_format(file: Path) -> Format:
    """Tell the format from the beginning of the file.

    Raises:
        HistoryError: the file cannot be opened or looks like none of them.
    """
    try:
        with file.open("rb") as opened:
            begin = opened.read(_GUESS_BYTES)
    except OSError as error:
        raise _cannot_open(file, error) from error
    for mark, problem, next_step in _WRAPPED:
        if begin.startswith(mark):
            raise HistoryError(str(file), problem, next_step)
    head = begin.decode("utf-8", errors="replace")
    lines = [line.strip() for line in head.split("\n") if line.strip()]
    if not lines or re.match(r'\{\s*"', lines[0]):
        return "jsonl"
    if re.match(r"\[?\s*(#jepsen\.history\.Op\s*)?\{\s*:", lines[0]):
        return "edn"
    if any(_LOG_LINE.search(line) for line in lines):
        return "jepsen-log"
    if lines[0].startswith("["):
        raise HistoryError(
            str(file),
            "it is one JSON list, not one event a line",
            "Write one event a line: jq -c '.[]' FILE",
        )
    raise HistoryError(
        str(file),
        "it looks like none of the known formats",
        f"Name its format with --format: {', '.join(get_args(Format))}",
    )


def _known_format(name: str) -> Format:
    for known in get_args(Format):
        if name == known:
            return known
    raise UsageError(
        f"there is no history format called {name!r}",
        f"Choose one of: {', '.join(get_args(Format))}",
    )


def _cannot_open(file: Path, error: OSError) -> HistoryError:
    return HistoryError(
        str(file),
        error.strerror or str(error),
        "Name a run folder or a history file that can be read",
    )


class _RawOperation(msgspec.Struct, frozen=True):
    """One event as its file has it."""

    line: int
    process: int
    type: EventType
    f: str
    value: Any
    key: Any = None
    error: str | None = None
    time: int | None = None


def _read_lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            yield from enumerate(opened, start=1)
    except OSError as error:
        raise _cannot_open(file, error) from error


def _log_operations(file: Path) -> Iterator[_RawOperation]:
    for number, line in _read_lines(file):
        match = _LOG_LINE.search(line.rstrip())
        if match is None:
            continue
        try:
            rest = parse_all(match["rest"])
        except EdnError as error:
            raise _broken(file, number, str(error)) from error
        yield _RawOperation(
            line=number,
            process=int(match["process"]),
            type=msgspec.convert(match["type"], EventType),
            f=match["f"],
            value=rest[0] if rest else None,
            error=str(rest[1]) if len(rest) > 1 else None,
        )


def _edn_operations(file: Path) -> Iterator[_RawOperation]:
    for number, line in _read_lines(file):
        text = line.strip()
        if number == 1:
            text = text.removeprefix("[")  # a history kept as one vector, one operation a line
        text = text.removesuffix("]") if text.endswith("}]") else text
        if text in ("", "]"):
            continue
        try:
            raw = _edn_operation(number, parse(text))
        except (EdnError, msgspec.ValidationError) as error:
            raise _broken(file, number, f"it holds no operation: {in_words(error)}") from error
        if raw is not None:
            yield raw


def _edn_operation(line: int, parsed: object) -> _RawOperation | None:
    """One event, None for lines of other processes than clients; raises EdnError."""
    if not isinstance(parsed, dict):
        raise EdnError("expected a map")
    operation = cast("dict[Any, Any]", parsed)
    for name in ("process", "type", "f"):
        if name not in operation:
            raise EdnError(f"the map has no :{name}")
    process = operation["process"]
    if not isinstance(process, int):
        return None
    time = operation.get("time")
    if not isinstance(time, int | None):
        raise EdnError(":time is no whole number")
    error = operation.get("error")
    return _RawOperation(
        line=line,
        process=process,
        type=msgspec.convert(operation["type"], EventType),
        f=str(operation["f"]),
        value=operation.get("value"),
        key=operation.get("key"),
        error=None if error is None else _error_name(error),
        time=time,
    )


def _error_name(error: object) -> str:
    """Jepsen's errors are keywords, or vectors that begin with one."""
    if isinstance(error, list) and error:
        return str(cast("list[object]", error)[0])
    return str(cast("object", error))


def _broken(file: Path, line: int, problem: str) -> HistoryError:
    return HistoryError(
        f"{file}, line {line}",
        problem,
        "Repair the line, or remove it with its whole operation",
        line=line,
    )


def _to_events(raw: Iterable[_RawOperation], file: Path) -> Iterator[Event]:
    """Number the events, and turn refused compare-and-sets into observations."""
    argument: dict[int, Any] = {}
    timed: bool | None = None
    for index, operation in enumerate(raw):
        if timed is None:
            timed = operation.time is not None
        elif timed != (operation.time is not None):
            raise _broken(file, operation.line, "only some of the operations have a time")
        f = _FUNCTIONS.get(operation.f, operation.f)
        outcome, value = operation.type, operation.value
        if outcome == "invoke":
            argument[operation.process] = value
        elif f == "cas":
            outcome, value = _judge_cas(operation, argument.get(operation.process))
        yield Event(
            index=index,
            time=index if operation.time is None else operation.time,
            process=operation.process,
            type=outcome,
            f=f,
            key=None if operation.key is None else str(operation.key),
            value=value,
            error=operation.error,
        )


def _judge_cas(operation: _RawOperation, argument: object) -> tuple[EventType, Any]:
    """Outcome and ``[expected, new, succeeded]`` of a completed compare-and-set."""
    if not isinstance(argument, list):
        return operation.type, operation.value
    pair = cast("list[Any]", argument)
    if operation.type == "ok":
        return "ok", [*pair[:2], True]
    refused = operation.type == "fail" and (
        operation.error in _REFUSALS or (operation.error is None and operation.value == argument)
    )
    if refused:
        return "ok", [*pair[:2], False]
    return operation.type, operation.value
