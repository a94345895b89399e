"""Run folders of workloads whose functions no list knows: a queue, and transactions.

Made of ``synthetic_runs``: the same course, under other names.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from splitbrain.history.functions import Function, Functions, Refusal
from splitbrain.history.run_folder import RunFolder
from tests.synthetic_runs import seal, write_run

Line = dict[str, Any]

#: A queue: ``push`` leaves a record, a ``pull`` that found nothing changed nothing.
QUEUE: Functions = {
    "peek": Function("reads"),
    "push": Function("records"),
    "pull": Function("records", Refusal(None, (None,))),
}
#: Transactions, of which some only read.
TRANSACTIONS: Functions = {"atomically": Function("records", reading_parts=("get",))}


def as_queue(line: Line) -> Line:
    """A line of a history or of a log of registers, as one of a queue."""
    name = {"read": "peek", "write": "push", "cas": "pull"}.get(line["f"], line["f"])
    value = line["value"]
    if name == "pull" and line.get("type") == "ok":
        # Found nothing where the compare-and-set met another value.
        value = value[1] if value[2] else None
    return {**line, "f": name, "value": value}


def as_transaction(line: Line) -> Line:
    value = line["value"]
    if line["f"] == "read":
        return {**line, "f": "atomically", "value": [["get", line["key"], value]]}
    if line["f"] == "cas" and line.get("type") == "ok" and not value[2]:
        # It met another value: all that it did was to read.
        return {**line, "f": "atomically", "value": [["get", line["key"], value[0]]]}
    parts = [["put", line["key"], value[:2] if line["f"] == "cas" else value]]
    return {**line, "f": "atomically", "value": parts}


def edited(path: Path, change: Callable[[Line], Line]) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    changed = [change(line) if line.get("f") else line for line in lines]
    path.write_text("".join(json.dumps(line) + "\n" for line in changed))


def invocations_as_refused(path: Path) -> None:
    """A transaction that was refused asked for nothing but what it read."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    asked: dict[int, Line] = {}
    for line in lines:
        if line["type"] == "invoke":
            asked[line["process"]] = line
        elif line["value"][0][0] == "get":
            asked[line["process"]]["value"] = line["value"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def folder_of(
    root: Path, change: Callable[[Line], Line], functions: Functions | None, **options: Any
) -> RunFolder:
    folder = RunFolder(write_run(root, operations_per_second=30, **options))
    edited(folder.history, change)
    if change is as_transaction:
        invocations_as_refused(folder.history)
    for node in folder.node_names():
        edited(folder.committed_log(node), change)
    plan = json.loads(folder.plan.read_text())
    plan |= {"workload": "theirs", "checkers": ["split-brain", "lost-commits"]}
    plan["functions"] = {} if functions is None else msgspec.to_builtins(functions)
    folder.plan.write_text(json.dumps(plan))
    seal(folder)
    return folder
