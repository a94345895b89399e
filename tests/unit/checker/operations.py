"""Short ways to write operations, logs and state events down."""

from typing import Any

from splitbrain.contracts.committed import CommittedLog, CommittedRecord
from splitbrain.contracts.state_event import StateEvent
from splitbrain.history.records import PairedOperation


class Ending:
    """A budget that ends after so many polls."""

    def __init__(self, after: int = 0, reason: str = "time budget of 1 s used up") -> None:
        self._left = after
        self._reason = reason

    def exhausted(self) -> str | None:
        self._left -= 1
        return self._reason if self._left < 0 else None


def operation(
    f: str,
    argument: Any = None,
    result: Any = None,
    *,
    start: int,
    end: int | None = None,
    outcome: str | None = None,
    process: int | None = None,
    key: str | None = "a",
    **fields: Any,
) -> PairedOperation:
    """One operation; its index is its start, its process its own, ``ok`` where it has an end."""
    outcome = outcome or ("info" if end is None else "ok")
    if outcome == "ok" and result is None and f in ("write", "add"):
        result = argument
    return PairedOperation(
        index=fields.pop("index", start),
        process=start if process is None else process,
        f=f,
        key=key,
        argument=argument,
        result=result,
        type=outcome,  # type: ignore[arg-type]
        start=start,
        end=end,
        **fields,
    )


def record(offset: int, epoch: int, f: str | None, value: Any, **fields: Any) -> CommittedRecord:
    """One record whose digest tells its content."""
    key = fields.pop("key", "a" if f else None)
    digest = fields.pop("digest", f"{epoch} {f} {key} {value}")
    return CommittedRecord(offset=offset, epoch=epoch, f=f, key=key, value=value, digest=digest)


def logs(*records: CommittedRecord, nodes: int = 3, start: int = 0) -> dict[str, CommittedLog]:
    """The same log on every node."""
    return {
        f"n{number}": log(f"n{number}", *records, start=start) for number in range(1, nodes + 1)
    }


def log(node: str, *records: CommittedRecord, start: int = 0) -> CommittedLog:
    end = max((record.offset + 1 for record in records), default=start)
    return CommittedLog(node=node, start_offset=start, end_offset=end, records=records)


def role(
    node: str, sequence: int, name: str, epoch: int, time: int | None, **fields: Any
) -> StateEvent:
    return StateEvent(
        node=node,
        sequence=sequence,
        incarnation=fields.pop("incarnation", 0),
        kind="role",
        epoch=epoch,
        role=name,
        time=time,
        **fields,
    )
