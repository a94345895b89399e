"""Reader of a run folder in any state: finished, dead or still growing.

Anything missing, torn or broken becomes a sentence in ``problems``, never an exception: the rest
can still show a violation. A history broken in its middle is read up to the break: a prefix of a
history is evidence, one with holes is not. Source: design, section 5.
"""

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from splitbrain.contracts.committed import (
    CommittedLog,
    CommittedRecord,
    ReplicaHeader,
    ReplicaLog,
    ReplicaRecord,
)
from splitbrain.contracts.errors import UNREADABLE, UsageError
from splitbrain.contracts.fault import Fault, FaultEvent
from splitbrain.contracts.member_digest import DigestAnswer
from splitbrain.contracts.runtime import SIMULATED, STANDING
from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.folder.manifest import damage
from splitbrain.harness.folder.simulation_record import DRAWN, SimulationRecord, read_for_judging
from splitbrain.harness.folder.store import is_alive
from splitbrain.history.border import refuse_foreign_entries
from splitbrain.history.course import LeaderSighting, Phase
from splitbrain.history.errors import HistoryError, PairingError
from splitbrain.history.fault_windows import FaultWindow, fault_windows
from splitbrain.history.functions import USUAL, Functions
from splitbrain.history.identity import key_text, operations_apart
from splitbrain.history.json_problems import in_words
from splitbrain.history.leadership import Reign, reigns, sighted_reigns
from splitbrain.history.pairing import pair
from splitbrain.history.plan import Plan, decode_plan
from splitbrain.history.reader import HistoryReader
from splitbrain.history.records import Event, PairedOperation
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.schedule_lines import is_planned, planned_fault

_Line = TypeVar("_Line")


class RunRecord(msgspec.Struct, frozen=True):
    """Evidence of one run."""

    folder: RunFolder
    #: None where ``plan.json`` is missing or unreadable.
    plan: Plan | None = None
    events: list[Event] = []
    operations: list[PairedOperation] = []
    scheduled: tuple[Fault, ...] = ()
    faults: tuple[FaultEvent, ...] = ()
    #: By node, in the node's own order.
    state_events: dict[str, list[StateEvent]] = {}
    #: By node, at the end of the run; empty for a run that never got there.
    committed_logs: dict[str, CommittedLog] = {}
    #: Replicas of partitioned logs by log and node, at the end of the run.
    replica_logs: dict[str, dict[str, ReplicaLog]] = {}
    #: Course of the run, in order; empty for a folder of other origin.
    phases: tuple[Phase, ...] = ()
    #: Whether the run still holds its lock.
    living: bool = False
    #: Unreadable parts, one sentence each.
    problems: tuple[str, ...] = ()
    #: Differences from the folder as the run left it, one clause each.
    damage: tuple[str, ...] = ()
    #: Changes of the leader as seen from outside.
    sightings: tuple[LeaderSighting, ...] = ()
    #: Digests that running members told.
    digests: tuple[DigestAnswer, ...] = ()
    #: None for other runs, and where it is lost.
    simulation: SimulationRecord | None = None

    @property
    def is_simulated(self) -> bool:
        """Return whether the run's world was simulated."""
        if self.simulation is not None:
            return True
        return self.plan is not None and self.plan.experiment.runtime == SIMULATED

    @property
    def is_standing(self) -> bool:
        """Whether the nodes were somebody else's, there before the run and after it."""
        return self.plan is not None and self.plan.experiment.runtime == STANDING

    @property
    def is_drawn(self) -> bool:
        """Return whether it is one world of a sweep, which proves nothing by itself.

        Its faults may end nodes, overlap or miss; the invariants find violations, and the sweep
        says whether enough was tried.
        """
        return self.is_simulated and self.plan is not None and self.plan.experiment.nemesis == DRAWN

    @property
    def ended_at_violation(self) -> bool:
        """Return whether it ended at a violation, before anything could heal."""
        if self.reached("stopped-at-violation"):
            return True
        return self.simulation is not None and self.simulation.violation is not None

    @property
    def knows_its_faults(self) -> bool:
        """Return whether ``faults.jsonl`` holds every fault of the run."""
        sentences = (*self.problems, *self.damage)
        if any(self.folder.faults.name in sentence for sentence in sentences):
            return False
        return bool(self.faults) or not self.scheduled or not self.reached("load-ended")

    @property
    def node_names(self) -> list[str]:
        """Return the plan's nodes, voters first; without a plan those that left a folder."""
        if self.plan is not None:
            return [str(node) for node in (*self.plan.nodes, *self.plan.observers)]
        return [str(node) for node in self.folder.node_names()]

    @property
    def observers(self) -> list[str]:
        """Return the nodes without a vote."""
        return [] if self.plan is None else [str(node) for node in self.plan.observers]

    @property
    def functions(self) -> Functions:
        """Return the effects of the workload's functions, by default the usual ones."""
        return USUAL if self.plan is None else self.plan.functions or USUAL

    def reached(self, phase: str) -> bool:
        """Return whether the run came as far as that phase."""
        return any(found.phase == phase for found in self.phases)

    @property
    def windows(self) -> list[FaultWindow]:
        """Return when each injected fault was in force, by start."""
        return fault_windows(self.faults, self.end_time)

    @property
    def reigns(self) -> list[Reign]:
        """Return the reigns by the nodes' own events, else as seen from outside."""
        if self.state_events:
            return reigns(self.state_events, self.windows)
        return sighted_reigns(self.sightings, self.end_time)

    @property
    def end_time(self) -> int:
        """Return the time of the last event of clients or nemesis, ns; 0 for an empty run."""
        last_fault = max((fault.time for fault in self.faults), default=0)
        return max(self.events[-1].time if self.events else 0, last_fault)


def load_run(root: Path) -> RunRecord:
    """Read a run folder.

    Raises:
        UsageError: there is no such folder, or it holds files that no run makes.
    """
    folder = RunFolder(root)
    if not root.is_dir():
        raise UsageError(f"there is no run folder {root}", "Name a folder below runs/.")
    refuse_foreign_entries(root)
    # Checked before reading: a run that ends meanwhile was read in part.
    living = is_alive(folder)
    problems: list[str] = []
    plan = _read_plan(folder, problems)
    events, operations = _read_history(folder, problems)
    schedule = read_json_lines(folder.schedule, dict[str, Any], problems)
    state_events: dict[str, list[StateEvent]] = {}
    committed_logs: dict[str, CommittedLog] = {}
    replica_logs: dict[str, dict[str, ReplicaLog]] = {}
    damaged = [] if living else damage(folder)
    for node in folder.node_names():
        read = read_json_lines(folder.state_events(node), StateEvent, problems)
        if read:
            read.sort(key=lambda event: (event.incarnation, event.sequence))
            state_events[str(node)] = read
        dump = folder.committed_log(node)
        log = read_committed_log(dump, problems)
        # A record missing in a dump counts against the system, so the dump must be undamaged.
        name = f"{dump.relative_to(root)} "
        if log is not None and not any(clause.startswith(name) for clause in damaged):
            committed_logs[str(node)] = log
        dump = folder.replica_logs(node)
        name = f"{dump.relative_to(root)} "
        if not any(clause.startswith(name) for clause in damaged):
            for replica in read_replica_logs(dump, problems):
                replica_logs.setdefault(replica.log, {})[str(node)] = replica
    if living:
        problems.append("The run is still going on; this is the verdict on what it has so far.")
    return RunRecord(
        folder=folder,
        plan=plan,
        events=events,
        operations=operations,
        sightings=tuple(read_json_lines(folder.leaders, LeaderSighting, problems)),
        digests=tuple(read_json_lines(folder.digests, DigestAnswer, problems)),
        simulation=read_for_judging(folder, problems),
        scheduled=_scheduled_faults(schedule, folder.schedule, problems),
        faults=tuple(read_json_lines(folder.faults, FaultEvent, problems)),
        state_events=state_events,
        committed_logs=committed_logs,
        replica_logs=replica_logs,
        phases=tuple(read_json_lines(folder.phases, Phase, problems)),
        living=living,
        damage=tuple(damaged),
        # Its readers add to them.
        problems=tuple(problems),
    )


def read_json_lines(path: Path, type_: type[_Line], problems: list[str]) -> list[_Line]:
    """Return the whole lines of a file; none where it is missing.

    Lines that do not fit are dropped with one sentence in ``problems`` that names the first; so is
    a torn last line, which a killed harness leaves.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        problems.append(f"{path.name} cannot be read: {error.strerror}.")
        return []
    decoder = msgspec.json.Decoder(type_)
    lines = content.split(b"\n")
    where = f"{path.parent.name}/{path.name}" if path.parent.name else path.name
    records: list[_Line] = []
    broken: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            records.append(decoder.decode(line))
        except UNREADABLE as error:
            # Every whole line ends with a line feed.
            if number < len(lines):
                broken.append(f"line {number}: {in_words(error)}")
            else:
                problems.append(f"The last line of {where} is torn ({len(line)} bytes left out).")
    if broken:
        problems.append(f"{len(broken)} lines of {where} are broken and left out ({broken[0]}).")
    return records


def read_committed_log(path: Path, problems: list[str]) -> CommittedLog | None:
    """Read one node's ``log.jsonl``: a header line, then one record per line; None if unusable.

    The header names the log's end, so a torn dump cannot pass for a short log. A dump with a broken
    line is dropped too: the missing record would count as lost on that node.
    """
    known_before = len(problems)
    lines = read_json_lines(path, dict[str, Any], problems)
    if not lines or len(problems) > known_before:
        return None
    where = f"{path.parent.name}/{path.name}"
    try:
        records = tuple(map(_record, lines[1:]))
        log = msgspec.convert({**lines[0], "records": records}, CommittedLog)
    except msgspec.ValidationError as error:
        problems.append(f"The log dump {where} is not one and is left out ({error}).")
        return None
    last = records[-1].offset + 1 if records else log.start_offset
    if last < log.end_offset:
        problems.append(
            f"The log dump {where} stops at offset {last} before its end {log.end_offset} "
            "and is left out."
        )
        return None
    return log


def read_replica_logs(path: Path, problems: list[str]) -> list[ReplicaLog]:
    """Read one node's ``replicas.jsonl``; none of it where it is damaged.

    A record that is missing counts against the system, and a replica's header has their number.
    """
    known_before = len(problems)
    lines = read_json_lines(path, dict[str, Any], problems)
    if len(problems) > known_before:
        return []
    found: list[ReplicaLog] = []
    where, at = f"{path.parent.name}/{path.name}", 0
    try:
        while at < len(lines):
            header = msgspec.convert(lines[at], ReplicaHeader)
            rows = lines[at + 1 : at + 1 + header.count]
            if len(rows) < header.count:
                raise ValueError(f"log {header.log} has {len(rows)} of {header.count} records")
            records = msgspec.convert(rows, tuple[ReplicaRecord, ...])
            found.append(msgspec.convert({**lines[at], "records": records}, ReplicaLog))
            at += 1 + header.count
    except ValueError as error:  # a ValidationError is one
        problems.append(f"The dump of replicas {where} is not one and is left out ({error}).")
        return []
    return found


def _record(line: dict[str, Any]) -> CommittedRecord:
    """Convert a line; its key is spelt as in the history."""
    record = msgspec.convert(line, CommittedRecord)
    text = key_text(record.key)
    return record if text == record.key else msgspec.structs.replace(record, key=text)


def _read_plan(folder: RunFolder, problems: list[str]) -> Plan | None:
    try:
        return decode_plan(folder.plan.read_bytes())
    except FileNotFoundError:
        problems.append("plan.json is missing; what the run was meant to be is not known.")
    except (OSError, ValueError, RecursionError) as error:
        problems.append(f"plan.json cannot be read: {in_words(error)}.")
    return None


def _read_history(
    folder: RunFolder, problems: list[str]
) -> tuple[list[Event], list[PairedOperation]]:
    """Return the events up to the first invalid one, and their operations."""
    if not folder.history.exists():
        problems.append("history.jsonl is missing: no client ever worked, or it was removed.")
        return [], []
    events: list[Event] = []
    reader = HistoryReader(folder.history)
    try:
        for event in reader:
            events.append(event)  # noqa: PERF402 - what came before an error is kept
    except (HistoryError, RecursionError) as error:
        problems.append(_broken_off(len(events), error))
    if reader.torn_bytes is not None:
        problems.append(
            f"The last line of history.jsonl is torn ({reader.torn_bytes} bytes left out): "
            "the harness did not end in order."
        )
    try:
        return events, [*operations_apart(pair(events))[0]]
    except PairingError as error:
        whole = [event for event in events if error.index is None or event.index < error.index]
        problems.append(_broken_off(len(whole), error))
    try:
        return whole, [*operations_apart(pair(whole))[0]]
    except PairingError as error:
        # Indexes that repeat or go back: no prefix can be trusted.
        problems.append(_broken_off(0, error))
        return [], []


def _broken_off(kept: int, error: Exception) -> str:
    what = f"{error.target}: {error.problem}" if isinstance(error, HistoryError) else str(error)
    return (
        f"history.jsonl is broken after its first {kept:,} events, only these were judged ({what})."
    )


def _scheduled_faults(
    lines: list[dict[str, Any]], path: Path, problems: list[str]
) -> tuple[Fault, ...]:
    """Return the planned faults; lines without a time describe a recorded fault instead."""
    scheduled: list[Fault] = []
    for line in lines:
        if not is_planned(line):
            continue
        try:
            scheduled.append(planned_fault(line))
        except msgspec.ValidationError as error:
            problems.append(f"A line of {path.name} is no scheduled fault ({error}).")
    return tuple(scheduled)
