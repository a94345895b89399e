"""Files as etcd's robustness tests record them, for the fuzz, of the operations of a story."""

import json
from collections.abc import Sequence
from random import Random
from typing import Any

from bench.reader_fuzz.stories import Told


def etcd_file(random: Random, told: Sequence[Told]) -> bytes:
    """One line for each operation."""
    records: list[dict[str, Any]] = []
    asked: dict[str, dict[str, Any]] = {}
    for place, event in enumerate(told, start=1):
        if event.type == "invoke":
            record = {
                "ClientId": int(event.process),
                "Input": _request(random, event),
                "Call": place,
                "Output": {"Error": "timed out"},
                "Return": 0,
            }
            records.append(record)
            asked[event.process] = record
            continue
        record = asked.pop(event.process)
        if event.type == "ok":
            record["Output"] = _answer(event, place)
        record["Return"] = place
    if random.random() < 0.3:
        random.shuffle(records)
    lines = [json.dumps(record, ensure_ascii=random.random() < 0.5) for record in records]
    return "".join(f"{line}\n" for line in lines).encode()


def _request(random: Random, event: Told) -> dict[str, Any]:
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


def _answer(event: Told, revision: int) -> dict[str, Any]:
    if event.f != "read":
        results = [{"KVs": None, "Count": 0}]
        return {"Txn": {"Failure": False, "Results": results}, "Revision": revision}
    value = json.loads(event.value)
    shown = {"Key": json.loads(event.key or '"k"'), "Value": {"Value": value, "Hash": 0}}
    pairs = [] if value is None else [{**shown, "ModRevision": revision}]
    return {"Range": {"KVs": pairs, "Count": len(pairs)}, "Revision": revision}
