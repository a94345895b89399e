"""Writes events in the formats of others, for tests that read them back."""

from collections.abc import Iterable
from typing import Any, cast

import msgspec

from splitbrain.history.records import Event, PairedOperation


def edn(value: Any) -> str:
    """A value as EDN."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    if isinstance(value, list):
        return f"[{' '.join(edn(item) for item in cast('list[Any]', value))}]"
    return repr(value)


def edn_line(event: Event, *, independent: bool = False, timed: bool = True) -> str:
    """An event as Jepsen writes it; a refused compare-and-set is its ``:fail``."""
    type_, value = as_jepsen(event)
    if independent:
        value = [event.key, value]
    fields = [f":process {event.process}", f":type :{type_}", f":f :{event.f}"]
    fields.append(f":value {edn(value)}")
    if event.key is not None and not independent:
        fields.append(f":key {edn(event.key)}")
    if timed:
        fields.append(f":time {event.time}")
    if event.error is not None:
        fields.append(f":error :{event.error}")
    return "{" + ", ".join(fields) + "}"


def log_line(event: Event) -> str:
    """An event as a line of Jepsen's log."""
    type_, value = as_jepsen(event)
    error = "" if event.error is None else f"\t:{event.error}"
    return f"INFO  jepsen.util - {event.process}\t:{type_}\t:{event.f}\t{edn(value)}{error}"


def as_jepsen(event: Event) -> tuple[str, Any]:
    if event.f == "cas" and event.type == "ok":
        return ("ok" if event.value[2] else "fail"), event.value[:2]
    return event.type, event.value


def etcd_lines(operations: Iterable[PairedOperation]) -> str:
    """Reads and writes of registers as etcd's robustness tests record them."""
    lines: list[bytes] = []
    for revision, operation in enumerate(operations, start=2):
        known = operation.type == "ok"
        output: dict[str, Any] = {"Revision": revision} if known else {"Error": operation.error}
        if operation.f == "read":
            request = {"Type": "range", "Range": {"Start": operation.key, "End": ""}}
            found = [] if operation.result is None else [pair(operation.key, operation.result)]
            output["Range"] = {"KVs": found, "Count": len(found)} if known else None
        else:
            put = {"Key": operation.key, "Value": {"Value": operation.argument}}
            step = {"Type": "put-operation", "Put": put}
            request = {"Type": "txn", "Txn": {"OperationsOnSuccess": [step]}}
            output["Txn"] = {"Failure": False, "Results": [{"KVs": None}]} if known else None
        record = {
            "ClientId": operation.process,
            "Input": request,
            "Call": operation.start,
            "Output": output,
            "Return": operation.end or 0,
        }
        lines.append(msgspec.json.encode(record) + b"\n")
    return b"".join(lines).decode()


def pair(key: str | None, value: Any, revision: int = 1) -> dict[str, Any]:
    return {"Key": key, "Value": {"Value": value, "Hash": 0}, "ModRevision": revision}
