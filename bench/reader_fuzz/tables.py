"""Parquet tables for the fuzz, of the operations of a story."""

import io
from collections.abc import Sequence
from importlib import import_module
from random import Random
from typing import Any

from bench.reader_fuzz.stories import Told

# The library has no types.
_pa: Any = import_module("pyarrow")
_pq: Any = import_module("pyarrow.parquet")


def table_of(random: Random, told: Sequence[Told]) -> bytes:
    """The bytes of a table with a row for each operation, now and then one with a fault."""
    rows: dict[str, int] = {}
    table: list[dict[str, Any]] = []
    start = random.choice((0, 10**18))
    for place, event in enumerate(told):
        time = start + place * random.choice((0, 1)) + place
        if event.type == "invoke":
            rows[event.process] = len(table)
            table.append(
                {
                    "index": place,
                    "process": int(event.process),
                    "f": event.f,
                    "key": event.key,
                    "argument": event.value,
                    "result": None,
                    "type": "info",
                    "start_ns": time,
                    "end_ns": None,
                }
            )
            continue
        row = table[rows.pop(event.process)]
        row |= {"type": event.type, "end_ns": None if event.type == "info" else time}
        if event.type == "ok":
            row["result"] = event.value
    if table and random.random() < 0.15:
        _spoil(random, table)
    names = ["process", "f", "key", "argument", "result", "type", "start_ns", "end_ns"]
    if random.random() < 0.7:
        names.append("index")
    if not any(row["key"] for row in table) and random.random() < 0.5:
        names.remove("key")
    if random.random() < 0.2:
        random.shuffle(table)
    types = {"index": "int64", "process": "int64", "start_ns": "int64", "end_ns": "int64"}
    schema = _pa.schema([(name, _pa.type_for_alias(types.get(name, "string"))) for name in names])
    rows_of = {name: [row[name] for row in table] for name in names}
    file = io.BytesIO()
    _pq.write_table(_pa.table(rows_of, schema=schema), file)
    return file.getvalue()


def _spoil(random: Random, table: list[dict[str, Any]]) -> None:
    row = random.choice(table)
    name, value = random.choice(
        (
            ("type", "done"),
            ("end_ns", None),
            ("end_ns", row["start_ns"] - 1),
            ("start_ns", None),
            ("index", None),
            ("argument", "{"),
            ("result", "1 2"),
            ("process", 0),
            ("f", None),
        )
    )
    row[name] = value
