"""Histories as integer columns, the same for every checker that is measured.

One entry per operation, values as small numbers, -1 for "nothing yet": what Porcupine's program
reads as JSON and what our kernels work on. Must never hold anything that tells the answer.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from splitbrain.checker.linearizability.column_history import ColumnParts, split_columns
from splitbrain.checker.models.registry import model_named
from splitbrain.history.columns import columns_of as operation_columns
from splitbrain.history.records import Event, PairedOperation
from splitbrain.history.value_shapes import wrong_shape

#: Numbers of the kinds of operations, by model; the same as in ``bench/porcupine``.
KINDS = {
    "cas-register": ("read", "write", "cas"),
    "kv": ("get", "put", "append"),
    "fifo-queue": ("dequeue", "enqueue"),
}
NOTHING = -1
#: Name of each column; ``return`` is -1 for an operation without answer.
NAMES = ("kind", "client", "key", "argument", "expected", "result", "call", "return")

Integers = NDArray[np.int64]


class HistoryColumns(msgspec.Struct, frozen=True):
    """One history."""

    name: str
    #: Key of ``KINDS``.
    model: str
    columns: dict[str, Integers]
    #: Values by their numbers.
    values: tuple[Any, ...]
    keys: tuple[str | None, ...]

    def __len__(self) -> int:
        return len(self.columns["kind"])

    def to_porcupine(self) -> bytes:
        """One line of JSON."""
        fields: dict[str, Any] = {"name": self.name, "model": self.model}
        fields |= {name: self.columns[name].tolist() for name in NAMES}
        if self.model == "kv":
            fields["strings"] = list(self.values)
        return msgspec.json.encode(fields) + b"\n"

    def to_kernel(self) -> ColumnParts:
        """Return the form that our kernels take, split into parts.

        Raises:
            ValueError: an operation makes no sense to the model.
        """
        parts = split_columns(
            operation_columns(self.to_operations()), model_named(self.model), wrong_shape
        )
        if parts is None:
            raise ValueError(f"{self.name} is no history of {self.model}")
        return parts

    def to_operations(self) -> list[PairedOperation]:
        """Return the form that checkers of the project take."""
        columns = [self.columns[name].tolist() for name in NAMES]
        return [
            self._operation(place, *entry) for place, entry in enumerate(zip(*columns, strict=True))
        ]

    def _operation(
        self,
        place: int,
        kind: int,
        client: int,
        key: int,
        argument: int,
        expected: int,
        result: int,
        call: int,
        end: int,
    ) -> PairedOperation:
        f = KINDS[self.model][kind]
        value: Any = self._value(argument)
        if f == "cas":
            value = [self._value(expected), value]
            answer: Any = [*value, bool(result)]
        else:
            answer = value if kind else self._value(result)
        return PairedOperation(
            index=place,
            process=client,
            f=f,
            key=self.keys[key],
            argument=None if kind == 0 else value,
            result=None if end < 0 else answer,
            type="info" if end < 0 else "ok",
            start=call,
            end=None if end < 0 else end,
        )

    def _value(self, number: int) -> Any:
        if number < 0:
            return "" if self.model == "kv" else None
        return self.values[number]


def columns_of(name: str, operations: Sequence[PairedOperation], model: str) -> HistoryColumns:
    """Return the columns of a history in the order of its operations; ``fail`` ones left out."""
    kinds = {f: number for number, f in enumerate(KINDS[model])}
    values: dict[Any, int] = {}
    keys: dict[str | None, int] = {}
    nothing = ("", None) if model == "kv" else (None,)

    def number(value: Any) -> int:
        return NOTHING if value in nothing else values.setdefault(value, len(values))

    rows: list[tuple[int, ...]] = []
    for o in operations:
        if o.type == "fail":
            continue
        argument = expected = result = NOTHING
        if o.f == "cas":
            expected, argument = (number(value) for value in o.argument)
            result = NOTHING if o.type == "info" else int(o.result[2])
        elif kinds[o.f] == 0:
            result = NOTHING if o.type == "info" else number(o.result)
        else:
            argument = number(o.argument)
        key = keys.setdefault(o.key, len(keys))
        end = -1 if o.end is None or o.type == "info" else o.end
        rows.append((kinds[o.f], o.process, key, argument, expected, result, o.start, end))
    table = np.array(rows, dtype=np.int64).reshape(len(rows), len(NAMES))
    columns = {column: np.ascontiguousarray(table[:, place]) for place, column in enumerate(NAMES)}
    return HistoryColumns(name, model, columns, tuple(values), tuple(keys))


def save(history: HistoryColumns, path: Path) -> None:
    """Write the columns where another process can load them."""
    header = msgspec.json.encode(
        {
            "name": history.name,
            "model": history.model,
            "values": history.values,
            "keys": history.keys,
        }
    )
    arrays: dict[str, Any] = dict(history.columns)
    np.savez(path, header=np.frombuffer(header, dtype=np.uint8), **arrays)


def load(path: Path) -> HistoryColumns:
    """Read what ``save`` wrote."""
    with np.load(path) as stored:
        header = msgspec.json.decode(stored["header"].tobytes())
        columns = {name: stored[name] for name in NAMES}
    return HistoryColumns(
        header["name"], header["model"], columns, tuple(header["values"]), tuple(header["keys"])
    )


def write_events(operations: Sequence[PairedOperation], path: Path) -> None:
    """Write a history as JSON lines, invocations and completions in the order of time."""
    moments = [(o.start, 0, place) for place, o in enumerate(operations)]
    moments += [(o.end, 1, place) for place, o in enumerate(operations) if o.end is not None]
    moments.sort()
    encoder = msgspec.json.Encoder()
    with path.open("wb") as file:
        for index, (time_ns, completes, place) in enumerate(moments):
            operation = operations[place]
            event = Event(
                index=index,
                time=time_ns,
                process=operation.process,
                type="ok" if completes else "invoke",
                f=operation.f,
                key=operation.key,
                value=operation.result if completes else operation.argument,
            )
            file.write(encoder.encode(event))
            file.write(b"\n")
