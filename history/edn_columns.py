"""Reader of Jepsen's ``history.edn`` and kv files straight into columns, if all lines are alike.

The first line shows the order of a writer's fields; one pattern of them then takes a block of lines
apart, and each distinct text of a value is read once, by ``history.edn``. Lines of other processes
than clients may differ. Anything else gives None, for ``history.jepsen`` to read and report.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from splitbrain.history.columns import (
    EVENT_TYPES,
    INVOKE,
    NUMBER_BY_TYPE,
    Codes,
    Integers,
    Numbering,
    OperationColumns,
)
from splitbrain.history.edn import parse
from splitbrain.history.edn_values import Name
from splitbrain.history.event_columns import EventColumns, paired_columns
from splitbrain.history.formats import KV_FUNCTIONS
from splitbrain.history.identity import key_text
from splitbrain.history.jepsen import edn_operation, error_name
from splitbrain.history.json_problems import DEPTH_MAX
from splitbrain.history.opening import NumberedLine, opened
from splitbrain.history.raw_operations import (
    FUNCTIONS,
    RawOperation,
    has_independent_keys,
    judge_cas,
)

_BLOCK_BYTES: Final = 1 << 20
_NUMBER = rb"(-?\d{1,18})"
_TEXT = rb'"[^"\\\n]*"'
_ATOM = rb"-?\d{1,18}|nil|true|false|:[\w.?!*+<>=/-]+|" + _TEXT
_VALUE = rb"(" + _ATOM + rb"|\[[^\[\]{}()#;\\\"\n]*\])"
#: Patterns of the fields' values.
_FIELDS: Final = {
    b"index": rb"-?\d{1,18}",
    b"time": _NUMBER,
    b"process": _NUMBER,
    b"type": rb":(invoke|ok|fail|info)",
    b"f": rb":([A-Za-z][\w-]*)",
    b"key": rb"(" + _ATOM + rb")",
    b"value": _VALUE,
}
_NEEDED: Final = {b"process", b"type", b"f"}
_ERROR: Final = rb"(?:, :error " + _VALUE + rb")?"
_BEGIN: Final = rb"^(?:#jepsen\.history\.Op)?\{"
_NAME = re.compile(rb"(?:" + _BEGIN + rb"|, ):([a-z]+) ")


class _Lines:
    """Lines of one file with the order of fields of the first."""

    def __init__(self, first: bytes) -> None:
        names = [name for name in _NAME.findall(first) if name != b"error"]
        #: Names of the groups, in their order.
        self.groups = [*(name for name in names if name != b"index"), b"error"]
        self.fits = _NEEDED <= set(names) <= set(_FIELDS) and len(set(names)) == len(names)
        fields = b", ".join(rb":" + name + rb" " + _FIELDS.get(name, b"") for name in names)
        self._pattern = re.compile(_BEGIN + fields + _ERROR + rb"\}$", re.MULTILINE)

    def taken_apart(self, block: bytes) -> list[tuple[bytes, ...]] | None:
        """Return the fields of each client's line; None where one is not like the first."""
        found = self._pattern.findall(block)
        if len(found) == block.count(b"\n") + 1:
            return found
        for line in block.split(b"\n"):
            if self._pattern.match(line) is None:
                text = line.decode("utf-8").strip()
                # The end of a list that never began, for the other reader to report.
                if (
                    text.endswith("]")
                    or edn_operation(NumberedLine(0, 0, line, whole=True), text) is not None
                ):
                    return None
        return found


def read_edn_columns(path: Path, *, is_kv: bool) -> OperationColumns | None:
    """Read the columns of a file of maps, one a line; None if it is not plain and whole.

    Raises:
        HistoryError: the file cannot be opened.
    """
    try:
        events = _events(path, is_kv=is_kv)
        return None if events is None else paired_columns(events)
    except (ValueError, OverflowError, RecursionError):
        return None


def _events(path: Path, *, is_kv: bool) -> EventColumns | None:
    texts: dict[bytes, Numbering] = {}
    columns: dict[bytes, list[Codes]] = {}
    times: list[Integers] = []
    for rows, groups in _rows(path):
        if rows is None:
            return None
        for name, column in zip(groups, zip(*rows, strict=True), strict=True):
            if name == b"time":
                times.append(np.fromiter(map(int, column), dtype=np.int64, count=len(column)))
                continue
            codes = texts.setdefault(name, Numbering()).codes_of_texts(column)
            columns.setdefault(name, []).append(codes)
    if not columns:
        return None
    whole = {name: np.concatenate(parts) for name, parts in columns.items()}
    return _Meaning(texts, whole, is_kv=is_kv).events(np.concatenate(times) if times else None)


def _rows(path: Path) -> Iterator[tuple[list[tuple[bytes, ...]] | None, list[bytes]]]:
    lines: _Lines | None = None
    with opened(path) as file:
        rest = b""
        while block := file.read(_BLOCK_BYTES):
            whole, separator, rest = (rest + block).rpartition(b"\n")
            if not separator:
                yield None, []
                return
            if lines is None:
                lines = _Lines(whole.split(b"\n", 1)[0])
                if not lines.fits:
                    yield None, []
                    return
            rows = lines.taken_apart(whole)
            if rows != []:
                yield rows, lines.groups
        if rest:
            yield None, []


class _Meaning:
    """Meanings of each field's distinct texts, each found out once; columns are their numbers."""

    def __init__(
        self, texts: dict[bytes, Numbering], columns: dict[bytes, Codes], *, is_kv: bool
    ) -> None:
        self._texts, self._columns, self._is_kv = texts, columns, is_kv
        self._count = len(columns[b"process"])

    def events(self, times: Integers | None) -> EventColumns | None:
        """Return the columns of the events; None where keys stand in the values."""
        keys, nodes, errors, values = (Numbering(None) for _ in range(4))
        kinds = Numbering()
        index = np.arange(self._count, dtype=np.int64)
        type_ = self._mapped(b"type", lambda text: NUMBER_BY_TYPE[text.decode()], np.int8)
        events = EventColumns(
            index=index,
            time=index if times is None else times,
            process=self._mapped(b"process", int, np.int64),
            type=type_,
            kind=self._mapped(b"f", lambda text: kinds.of(_function(text)), np.int32),
            key=self._mapped(b"key", lambda text: keys.of(_key(text)), np.int32),
            value=self._mapped(b"value", lambda text: values.of(_value(text)), np.int32),
            node=np.zeros(self._count, dtype=np.int32),
            error=self._mapped(b"error", lambda text: errors.of(_error(text)), np.int32),
            final=np.zeros(self._count, dtype=bool),
            kinds=kinds,
            keys=keys,
            nodes=nodes,
            errors=errors,
            values=values,
        )
        if self._is_kv and not _is_sound_kv(events):
            return None
        if "cas" not in kinds.things and "read" not in kinds.things:
            return events
        return None if _has_keys_in_values(events) else _with_refusals(events, values)

    def _mapped(self, name: bytes, meaning: Callable[[bytes], int], kind: Any) -> NDArray[Any]:
        """Return the meaning of each text of a field; of the empty text without such a field."""
        codes = self._columns.get(name)
        if codes is None:
            return np.full(self._count, meaning(b""), dtype=kind)
        table = np.array([meaning(text) for text in self._texts[name].things], dtype=kind)
        return table[codes]


def _function(text: bytes) -> str:
    name = text.decode()
    return FUNCTIONS.get(name, name)


def _value(text: bytes) -> Any:
    if text.isdigit():
        return int(text)
    if text.startswith(b'"'):
        # The pattern lets no escape through.
        return text[1:-1].decode("utf-8")
    if text.startswith(b":"):
        return Name("keyword", text[1:].decode("utf-8"))
    return None if text in (b"", b"nil") else parse(text.decode("utf-8"), DEPTH_MAX)


def _key(text: bytes) -> str | None:
    return key_text(_value(text))


def _error(text: bytes) -> str | None:
    error = _value(text)
    return None if error is None else error_name(error)


def _is_sound_kv(events: EventColumns) -> bool:
    """Return whether a kv file is sound: its kinds, a key in each line, texts as values."""
    return (
        KV_FUNCTIONS.issuperset(events.kinds.things)
        and bool(events.key.all())
        and all(isinstance(value, str | None) for value in events.values.things)
    )


def _has_keys_in_values(events: EventColumns) -> bool:
    kinds, values, keys = events.kinds.things, events.values.things, events.keys.things
    invoked = events.type == INVOKE
    fields = np.stack((events.kind[invoked], events.key[invoked], events.value[invoked]))
    invocations = [
        RawOperation(0, 0, 0, "invoke", kinds[kind], values[value], key=keys[key])
        for kind, key, value in np.unique(fields, axis=1).T.tolist()
    ]
    return has_independent_keys(invocations)


def _with_refusals(events: EventColumns, numbering: Numbering) -> EventColumns:
    """Replace completions of compare-and-sets by their meaning, see ``history.raw_operations``."""
    kinds, values, errors = events.kinds.things, events.values.things, events.errors.things
    if "cas" not in kinds:
        return events
    order = np.argsort(events.process, kind="stable")
    argument = np.zeros(len(order), dtype=np.int32)
    same = events.process[order][1:] == events.process[order][:-1]
    argument[order[1:][same]] = events.value[order[:-1][same]]
    places = np.flatnonzero((events.kind == kinds.index("cas")) & (events.type != INVOKE))
    fields = np.stack(
        (events.type[places], events.value[places], events.error[places], argument[places])
    )
    distinct, numbers = np.unique(fields, axis=1, return_inverse=True)
    types, results = events.type.copy(), events.value.copy()
    rows: list[list[int]] = distinct.T.tolist()
    judged = [
        judge_cas(
            RawOperation(0, 0, 0, EVENT_TYPES[type_], "cas", values[value], error=errors[error]),
            values[value],
            values[argument],
        )
        for type_, value, error, argument in rows
    ]
    types[places] = np.array([NUMBER_BY_TYPE[t] for t, _ in judged], dtype=np.int8)[numbers]
    codes = np.array([numbering.of(value) for _, value in judged], dtype=np.int32)
    results[places] = codes[numbers]
    return msgspec.structs.replace(events, type=types, value=results)
