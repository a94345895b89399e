"""Fetches what the nodes leave behind: output, data, and the neutral dump of their log.

A node's data may be anything after a crash or a planted bug, so the adapter reads them in a process
that can be killed: what hangs, crashes or eats memory there costs that node's dump and no more.
"""

import pickle
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.contracts.budget import Budget, Unlimited
from splitbrain.contracts.committed import CommittedLog, ReplicaHeader, ReplicaLog
from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import OUTPUT, Runtime
from splitbrain.contracts.system import System
from splitbrain.harness.folder.atomic_file import write_atomically
from splitbrain.harness.folder.refusals import tell_refusal
from splitbrain.harness.pool.limits import Limits
from splitbrain.harness.pool.workers import Part, run_parts
from splitbrain.harness.run.run_clock import NANOSECONDS
from splitbrain.history.border import DATA_FOLDER, foreign_entry
from splitbrain.history.run_folder import RunFolder

_DUMP_FUNCTION = f"{__name__}:dump_log"
#: Time of a line of a node's output, as container engines put it before the line.
_STAMP: Final = re.compile(r"(?P<second>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(?P<fraction>\d{1,9})Z ")
_DUMP_LIMITS = Limits(time_budget_s=120.0, memory_budget_mib=4096, jobs=2)

#: System, one of its nodes, the run's folder, and what the clock on the wall read at its zero.
_Payload = tuple[System, NodeName, RunFolder, int | None]


class LogHeader(msgspec.Struct, frozen=True):
    """First line of ``log.jsonl``."""

    node: NodeName
    start_offset: int
    end_offset: int


def collect_node(runtime: Runtime, folder: RunFolder, node: NodeName) -> None:
    """Fetch one stopped node's output and data folder.

    Raises:
        HarnessError: the runtime failed.
    """
    target = folder.node(node)
    target.mkdir(parents=True, exist_ok=True)
    runtime.collect(node, target, with_data=True)


def write_printed_events(
    system: System, folder: RunFolder, node: NodeName, wall_start_ns: int
) -> None:
    """Write the state events in what a node printed.

    Raises:
        HarnessError: the disk refuses.
    """
    output, path = folder.node(node) / OUTPUT, folder.state_events(node)
    if not output.is_file():
        return
    with output.open("rb") as file:
        events = system.events_printed(node, _printed(file, wall_start_ns))
        lines = [msgspec.json.encode(event) + b"\n" for event in events]
    with tell_refusal("write state events", path):
        write_atomically(path, b"".join(lines))


def _printed(lines: Iterable[bytes], wall_start_ns: int) -> Iterator[tuple[int | None, str]]:
    """Yield each line with its time; the runtime has written that before it, or nothing."""
    for line in lines:
        text = line.decode(errors="replace").rstrip("\n")
        found = _STAMP.match(text)
        if found is None:
            yield None, text
            continue
        # Node and run share a machine, and so does the engine that noted the time.
        second = int(datetime.fromisoformat(found["second"]).replace(tzinfo=UTC).timestamp())
        time = second * NANOSECONDS + int(found["fraction"].ljust(9, "0")) - wall_start_ns
        yield time, text[found.end() :]


def dump_logs(
    system: System,
    folder: RunFolder,
    nodes: Sequence[NodeName],
    wall_start_ns: int | None = None,
) -> list[str]:
    """Dump the logs of all nodes whose data were fetched; what could not be, in words.

    A data folder that the adapter cannot read is a finding about the system or about a planted
    disk fault, not a failure of the harness: the dump is then missing, and checkers say so.
    Systems that show neither a committed log nor replicas leave their data alone.

    ``wall_start_ns`` is what the clock on the wall read when the run's time began, nanoseconds
    since 1970. State events that are printed are written where it is known.
    """
    prints = system.declares_state_events and not system.tells_events_at_once
    wall_start_ns = wall_start_ns if prints else None
    has_logs = system.declares_committed_logs or system.declares_replica_logs
    if not has_logs and wall_start_ns is None:
        return []
    found = [node for node in nodes if (folder.node(node) / DATA_FOLDER).is_dir()]
    problems = [f"{node}: its data were not fetched" for node in nodes if node not in found]
    payloads = [(system, node, folder, wall_start_ns) for node in found]
    if not _can_be_sent(system):
        # An adapter that holds on to this process is asked in it.
        results = [_dump_here(payload) for payload in payloads]
    else:
        outcomes = run_parts([Part(_DUMP_FUNCTION, payload) for payload in payloads], _DUMP_LIMITS)
        results = [
            outcome.value
            if outcome.failure is None
            else f"the dump of its log failed: {outcome.failure}"
            for outcome in outcomes
        ]
    return problems + [
        f"{node}: {problem}" for node, problem in zip(found, results, strict=True) if problem
    ]


def dump_log(payload: _Payload, _budget: Budget) -> str | None:
    """In a worker: dump one node's logs; what could not be read, or None."""
    system, node, folder, wall_start_ns = payload
    data = folder.node(node) / DATA_FOLDER
    # The system under test, or who sent the folder, may have put anything there.
    if (found := foreign_entry(data)) is not None:
        return f"its data hold {found}, so that nothing of them is read"
    try:
        if wall_start_ns is not None:
            write_printed_events(system, folder, node, wall_start_ns)
        if system.declares_committed_logs:
            write_committed_log(folder.committed_log(node), system.committed_log(node, data))
        if system.declares_replica_logs:
            write_replica_logs(folder.replica_logs(node), system.replica_logs(node, data))
    except HarnessError as error:
        return str(error)
    return None


def _dump_here(payload: _Payload) -> str | None:
    try:
        return dump_log(payload, Unlimited())
    # A defect of the adapter costs the dump, as it does in a worker.
    except Exception as error:  # noqa: BLE001
        return f"the dump of its log crashed: {type(error).__name__}: {error}"


def _can_be_sent(system: System) -> bool:
    try:
        pickle.dumps(system)
    except (pickle.PicklingError, TypeError, AttributeError):
        return False
    return True


def write_committed_log(path: Path, log: CommittedLog) -> None:
    """Write a dump, whole or not at all: a header line, then one line per record.

    Raises:
        HarnessError: the disk refuses.
    """
    header = LogHeader(NodeName(log.node), log.start_offset, log.end_offset)
    encode = msgspec.json.encode
    lines = [encode(header), *(encode(record) for record in log.records), b""]
    with tell_refusal("write the dump of a log", path):
        write_atomically(path, b"\n".join(lines))


def write_replica_logs(path: Path, logs: Sequence[ReplicaLog]) -> None:
    """Write a dump, whole or not at all: for each replica a header, then a line per record.

    Raises:
        HarnessError: the disk refuses.
    """
    encode = msgspec.json.encode
    lines: list[bytes] = []
    for log in logs:
        header = ReplicaHeader(
            **{name: getattr(log, name) for name in ReplicaHeader.__struct_fields__[:-1]},
            count=len(log.records),
        )
        lines += [encode(header), *map(encode, log.records)]
    with tell_refusal("write the dump of replicas", path):
        write_atomically(path, b"".join(line + b"\n" for line in lines))
