"""Files for the fuzz, of the operations of a story: Parquet tables, etcd's records; and damage.

Every kind of damage keeps most of the file readable.
"""

import io
import json
from collections.abc import Callable, Sequence
from importlib import import_module
from random import Random
from typing import Any

from bench.reader_fuzz.stories import DrawnEvent

# The library has no types.
_pa: Any = import_module("pyarrow")
_pq: Any = import_module("pyarrow.parquet")


def table_of(random: Random, events: Sequence[DrawnEvent]) -> bytes:
    """Return the bytes of a table with a row for each operation, now and then one with a fault."""
    rows: dict[str, int] = {}
    table: list[dict[str, Any]] = []
    start = random.choice((0, 10**18))
    for place, event in enumerate(events):
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


def etcd_file(random: Random, events: Sequence[DrawnEvent]) -> bytes:
    """One line for each operation."""
    records: list[dict[str, Any]] = []
    invocations: dict[str, dict[str, Any]] = {}
    for place, event in enumerate(events, start=1):
        if event.type == "invoke":
            record = {
                "ClientId": int(event.process),
                "Input": _request(random, event),
                "Call": place,
                "Output": {"Error": "timed out"},
                "Return": 0,
            }
            records.append(record)
            invocations[event.process] = record
            continue
        record = invocations.pop(event.process)
        if event.type == "ok":
            record["Output"] = _answer(event, place)
        record["Return"] = place
    if random.random() < 0.3:
        random.shuffle(records)
    lines = [json.dumps(record, ensure_ascii=random.random() < 0.5) for record in records]
    return "".join(f"{line}\n" for line in lines).encode()


def _request(random: Random, event: DrawnEvent) -> dict[str, Any]:
    key = json.loads(event.key or '"k"')
    if event.f == "read":
        return {"Type": "range", "Range": {"Start": key, "End": "", "Revision": 0}}
    if random.random() < 0.1:
        step: dict[str, Any] = {"Type": "delete-operation", "Delete": {"Key": key}}
    else:
        lease = random.choice((0, 0, 0, 7))
        put = {"Key": key, "Value": {"Value": json.loads(event.value), "Hash": 0}, "LeaseID": lease}
        step = {"Type": "put-operation", "Put": put}
    return {"Type": "txn", "Txn": {"Conditions": None, "OperationsOnSuccess": [step]}}


def _answer(event: DrawnEvent, revision: int) -> dict[str, Any]:
    if event.f != "read":
        results = [{"KVs": None, "Count": 0}]
        return {"Txn": {"Failure": False, "Results": results}, "Revision": revision}
    value = json.loads(event.value)
    shown = {"Key": json.loads(event.key or '"k"'), "Value": {"Value": value, "Hash": 0}}
    pairs = [] if value is None else [{**shown, "ModRevision": revision}]
    return {"Range": {"KVs": pairs, "Count": len(pairs)}, "Revision": revision}


_GARBAGE = (b"{", b"]", b"null", b'"x"', b"{}", b"\xff", b"{:a}", b"[1,", b"\x00", b"nil", b"1 2")


def damaged(random: Random, content: bytes, *, keep_meaning: bool = False) -> bytes:
    """Return the file with one fault.

    Args:
        random: where the fault is drawn from.
        content: the file.
        keep_meaning: whether no line may become one of another meaning.
    """
    ways = [way for way in _WAYS if not keep_meaning or way not in _CHANGES_MEANING]
    return random.choice(ways)(random, content) if content else content


def _cut_last_line(random: Random, content: bytes) -> bytes:
    begin = content.rstrip(b"\n").rfind(b"\n") + 1
    return content[: random.randrange(begin, len(content))]


def _without_line_feed(_random: Random, content: bytes) -> bytes:
    return content.rstrip(b"\r\n")


def _with_blanks_at_end(random: Random, content: bytes) -> bytes:
    return content + random.choice((b"\n", b"  ", b"\n\n", b" \n", b"\r\n", b"\t"))


def _flipped(random: Random, content: bytes) -> bytes:
    place = random.randrange(len(content))
    other = random.choice((content[place] ^ (1 << random.randrange(8)), random.randrange(256)))
    return content[:place] + bytes((other,)) + content[place + 1 :]


def _without_some_bytes(random: Random, content: bytes) -> bytes:
    place = random.randrange(len(content))
    return content[:place] + content[place + random.randint(1, 4) :]


def _with_changed_lines(random: Random, content: bytes) -> bytes:
    lines = content.split(b"\n")
    place, other = random.randrange(len(lines)), random.randrange(len(lines))
    way = random.randrange(4)
    if way == 0:
        del lines[place]
    elif way == 1:
        lines.insert(other, lines[place])
    elif way == 2:
        lines[place], lines[other] = lines[other], lines[place]
    else:
        lines.insert(place, random.choice(_GARBAGE))
    return b"\n".join(lines)


_CHANGES_MEANING = (_flipped, _without_some_bytes)
_WAYS: tuple[Callable[[Random, bytes], bytes], ...] = (
    _cut_last_line,
    _cut_last_line,
    _cut_last_line,
    _without_line_feed,
    _with_blanks_at_end,
    _flipped,
    _without_some_bytes,
    _with_changed_lines,
)
