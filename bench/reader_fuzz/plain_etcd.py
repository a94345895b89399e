"""A plain reader of what etcd's robustness tests record: puts, deletes and ranges of one key.

Transactions with conditions and ranges of several keys are not drawn, and not read.
Source: docs/history-format.md, "etcd's robustness tests".
"""

from fractions import Fraction
from typing import Any

from bench.reader_fuzz.plain_history import PlainOperation, Reading, refused
from bench.reader_fuzz.plain_json import Members, Number, read_json
from bench.reader_fuzz.plain_values import Plain, PlainError, text

_PLAIN_BYTES_MAX = 19
_UNKNOWN = ("Error", "ClientError", "Persisted", "PartialResponse")


def read_etcd_plainly(content: bytes, *, skip_broken: bool = False) -> Reading:
    """Return the operations of one file, by their call."""
    lines = content.split(b"\n")
    last = lines.pop()
    torn, broken = False, 0
    records: list[Members] = []
    for number, line in enumerate([*lines, last], start=1):
        if not line.strip():
            continue
        try:
            record = read_json(line)
            _refuse_nonsense(record)
        except PlainError as error:
            if number > len(lines) and not _is_json(line):
                torn = True
            elif skip_broken:
                broken += 1
            else:
                return refused(f"line {number}: {error}")
            continue
        records.append(record)
    records.sort(key=lambda record: _number(record, "Call"))
    operations = [operation for record in records for operation in _operations(record)]
    named = [
        operation._replace(process=operation.process or ("nobody", place))
        for place, operation in enumerate(operations)
    ]
    # Leaving out and refusing are both safe.
    doubts = frozenset({"a torn line"}) if torn else frozenset[str]()
    return Reading(named, torn=torn, broken=broken, doubts=doubts)


def _refuse_nonsense(record: Any) -> None:
    if not isinstance(record, Members):
        raise PlainError("no object")
    for name in ("ClientId", "Call"):
        _number(record, name)
    if _number(record, "ClientId") < 0:
        raise PlainError("a client below zero")
    if not isinstance(record.get("Input"), Members) or not isinstance(
        record.get("Output"), Members
    ):
        raise PlainError("no request or no answer")
    if _is_known(record) and _number(record, "Return") <= _number(record, "Call"):
        raise PlainError("an answer before its question")


def _is_json(line: bytes) -> bool:
    try:
        read_json(line)
    except PlainError:
        return False
    return True


def _is_known(record: Members) -> bool:
    return not any(record.get("Output").get(name) for name in _UNKNOWN)


def _number(record: Members, name: str) -> int:
    value = record.get(name)
    if not isinstance(value, Number):
        raise PlainError(f"no {name}")
    return int(value.digits)


def _operations(record: Members) -> list[PlainOperation]:
    request, known = record.get("Input"), _is_known(record)
    if request.get("Type") == "range":
        key = request.get("Range").get("Start")
        found = record.get("Output").get("Range")
        if not known or found is None:
            return []
        pairs: list[Members] = found.get("KVs") or []
        shown = {pair.get("Key"): _value(pair.get("Value")) for pair in pairs}
        return [_operation(record, "read", key, None, shown.get(key))]
    (step,) = request.get("Txn").get("OperationsOnSuccess")
    if step.get("Type") == "delete-operation":
        return [_operation(record, "write", step.get("Delete").get("Key"), None, None)]
    put = step.get("Put")
    value = _value(put.get("Value"))
    done = [_operation(record, "write", put.get("Key"), value, value)]
    if put.get("LeaseID") not in (None, Number("0")):
        ends = _operation(record, "write", put.get("Key"), None, None)
        done.append(ends._replace(process=None, type="info", end=None, error="?", result=None))
    return done


def _operation(record: Members, f: str, key: str, argument: Plain, result: Plain) -> PlainOperation:
    known = _is_known(record)
    return PlainOperation(
        process=("number", _number(record, "ClientId")),
        f=f,
        key=text(key),
        argument=argument,
        result=result if known else None,
        type="ok" if known else "info",
        start=Fraction(_number(record, "Call")),
        end=Fraction(_number(record, "Return")) if known else None,
        error=None if known else "?",
    )


def _value(stored: Members) -> Plain:
    digest = stored.get("Hash")
    if isinstance(digest, Number) and int(digest.digits):
        return text(f"#{int(digest.digits):08x}")
    content = (stored.get("Value") or "").encode()
    if len(content) <= _PLAIN_BYTES_MAX:
        return text(content.decode())
    return text(f"#{_fnv(content):08x}")


def _fnv(content: bytes) -> int:
    """FNV-1a of 32 bits (draft-eastlake-fnv)."""
    digest = 2166136261
    for byte in content:
        digest = (digest ^ byte) * 16777619 % 2**32
    return digest
