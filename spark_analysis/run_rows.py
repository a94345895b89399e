"""Reader of the files of a run folder as rows of the ingested tables, one row at a time.

Each function reports to ``damage`` everything that it leaves out: a torn last line of the history,
broken lines, a log dump that stops before its end, a file that cannot be read. A missing file gives
no rows. Must never hold a whole file, except the few faults of a run.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from splitbrain.contracts.committed import CommittedRecord, RecordForm
from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.fault import FaultEvent, FaultPhase
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from splitbrain.contracts.words import counted
from splitbrain.history.errors import HistoryError, PairingError
from splitbrain.history.fault_windows import Phases, by_fault, gone_with, has_bitten, traits_of
from splitbrain.history.functions import Functions, was_refused
from splitbrain.history.identity import key_text
from splitbrain.history.pairing import pair
from splitbrain.history.reader import HistoryReader
from splitbrain.history.records import Event, PairedOperation
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.damage import Damage
from splitbrain.spark_analysis.schemas import (
    COMMITTED,
    FAULTS,
    LOGS,
    OPERATIONS,
    STATE_EVENTS,
    Table,
)

#: Values in the order of the table's columns, without the run id.
Row = tuple[Any, ...]

_Line = TypeVar("_Line")
_RECORDS: Final = msgspec.json.Decoder(CommittedRecord)
_VALUES: Final = msgspec.json.Encoder(order="deterministic")


class _LogHeader(msgspec.Struct, frozen=True):
    """First line of ``log.jsonl``."""

    node: str
    start_offset: int
    end_offset: int


class _MetricLine(msgspec.Struct, frozen=True):
    """Line of ``metrics.jsonl``, as ``harness.run.metrics`` writes it."""

    time: int
    node: str
    status: str
    cpu_seconds_total: float | None = None
    memory_bytes: int | None = None
    system: dict[str, float] | None = None


def ingested_rows(
    folder: RunFolder,
    functions: Functions,
    nodes: Sequence[str],
    damage: Damage,
    forms: Mapping[str, RecordForm],
) -> Iterator[tuple[Table, Iterable[Row]]]:
    """Yield the rows of each of ``INGESTED_TABLES``; those of one are used up before the next.

    ``functions`` and ``forms`` are those that the plan declares, none where it declares none.
    """
    yield OPERATIONS, operation_rows(folder, functions, forms, damage)
    yield FAULTS, fault_rows(folder, damage)
    yield STATE_EVENTS, state_event_rows(folder, nodes, damage)
    # One pass fills two tables: the logs' records, and their bounds.
    logs: list[Row] = []
    yield COMMITTED, committed_rows(folder, nodes, logs, damage)
    yield LOGS, logs


def operation_rows(
    folder: RunFolder, functions: Functions, forms: Mapping[str, RecordForm], damage: Damage
) -> Iterator[Row]:
    """Yield rows of ``operations``, in the order of completion, those never completed last."""
    for operation in _operations(folder, damage):
        yield _operation_row(operation, functions, forms)


def _operations(folder: RunFolder, damage: Damage) -> Iterator[PairedOperation]:
    name = folder.history.name
    if not folder.history.exists():
        damage.add("no-history", f"{name} is missing.")
        return
    reader = HistoryReader(folder.history)
    in_flight: dict[int, Event] = {}
    # One for each operation without an answer, each of which took a client's patience.
    retired: set[int] = set()
    last_index = -1
    try:
        for event in reader:
            if event.index <= last_index or event.process in retired:
                raise PairingError(_why(event, last_index), event.index)
            last_index = event.index
            invocation = in_flight.get(event.process)
            if event.type == "invoke" and invocation is None:
                in_flight[event.process] = event
                continue
            # Two events at most: pairing refuses what breaks the rules of a history.
            yield from pair((event,) if invocation is None else (invocation, event))
            del in_flight[event.process]
            if event.type == "info":
                retired.add(event.process)
    except HistoryError as error:
        why = str(error).rstrip(".")
        damage.add("history-broken", f"{name} is taken up to a broken place only: {why}.")
    if reader.torn_bytes is not None:
        damage.add("history-torn", f"The last line of {name} is torn.")
    for invocation in in_flight.values():
        yield from pair((invocation,))


def _why(event: Event, last_index: int) -> str:
    if event.index <= last_index:
        return f"index {event.index} does not come after index {last_index}"
    return f"process {event.process} goes on with {event.f} after info retired it"


def _operation_row(
    operation: PairedOperation, functions: Functions, forms: Mapping[str, RecordForm]
) -> Row:
    epoch, offset = operation.position or (None, None)
    form = forms.get(operation.f)
    return (
        operation.index,
        operation.process,
        operation.f,
        operation.key,
        json_text(operation.argument),
        json_text(operation.result) if operation.type == "ok" else None,
        operation.type,
        operation.start,
        operation.end,
        operation.node,
        operation.error,
        epoch,
        offset,
        operation.final,
        _effect(operation, functions),
        None if form is None else form.f,
        None if form is None else json_text(form.recorded(operation.argument)),
    )


def _effect(operation: PairedOperation, functions: Functions) -> str | None:
    f = operation.f
    if f not in functions:
        return None
    if operation.type == "ok" and was_refused(functions, f, operation.result):
        return "refused"
    return functions[f].effect_on(operation.argument)


def fault_rows(folder: RunFolder, damage: Damage) -> list[Row]:
    """Return rows of ``faults``, in the order of the schedule, with the phases side by side."""
    by_index = by_fault(json_lines(folder.faults, FaultEvent, damage))
    return [_fault_row(index, events) for index, events in sorted(by_index.items())]


def _fault_row(index: int, events: Sequence[FaultEvent]) -> Row:
    # The first event of a phase counts.
    phases: Phases = {event.phase: event for event in reversed(events)}
    # Targets are known from the injection on; a fault that was never injected hit nothing.
    event = phases.get("invoked") or events[0]
    reached: tuple[FaultPhase, ...] = ("invoked", "verified", "healing", "removed", "resumed")
    times = (phases[phase].time if phase in phases else None for phase in reached)
    return (
        index,
        event.kind,
        event.target,
        list(event.nodes),
        event.leader,
        *times,
        has_bitten(phases),
        "not-applicable" not in phases,
        [f"{link.source}>{link.destination}" for link in event.links],
        next((phase.evidence for phase in events if phase.evidence is not None), None),
        gone_with(phases) is not None,
        traits_of(event).ends_process,
    )


def state_event_rows(folder: RunFolder, nodes: Sequence[str], damage: Damage) -> Iterator[Row]:
    """Yield rows of ``state_events``, node by node, in the order in which they arrived."""
    for node in nodes:
        for event in json_lines(folder.state_events(NodeName(node)), StateEvent, damage):
            yield (
                event.node,
                event.incarnation,
                event.sequence,
                event.kind,
                event.epoch,
                event.role,
                event.leader,
                event.offset,
                event.base_offset,
                event.reason,
                event.time,
                json_text(event.detail) if event.detail else None,
            )


def committed_rows(
    folder: RunFolder, nodes: Sequence[str], logs: list[Row], damage: Damage
) -> Iterator[Row]:
    """Yield rows of ``committed``; append one row of ``logs`` per node to ``logs``."""
    for node in nodes:
        path = folder.committed_log(NodeName(node))
        lines = json_lines(path, msgspec.Raw, damage)
        header = _log_header(next(lines, None))
        if header is None:
            logs.append((node, None, None))
            continue
        end = header.start_offset
        for line in lines:
            try:
                record = _RECORDS.decode(line)
            except UNREADABLE as error:
                damage.add(
                    "lines-broken",
                    f"nodes/{node}/{path.name} holds a line that is no record ({error}).",
                )
                continue
            end = record.offset + 1
            yield (
                node,
                record.offset,
                record.epoch,
                record.f,
                key_text(record.key),
                json_text(record.value),
                record.digest,
            )
        if end < header.end_offset:
            # A torn dump must not pass for a short log: nothing is known of this node.
            damage.add(
                "log-cut",
                f"nodes/{node}/{path.name} stops at offset {end}, before its end "
                f"{header.end_offset}, and is left out.",
            )
            logs.append((node, None, None))
        else:
            logs.append((node, header.start_offset, header.end_offset))


def _log_header(line: msgspec.Raw | None) -> _LogHeader | None:
    if line is None:
        return None
    try:
        return msgspec.json.decode(line, type=_LogHeader)
    except UNREADABLE:
        return None


def metric_rows(folder: RunFolder, damage: Damage) -> Iterator[Row]:
    """Yield rows of ``metrics``, in the order in which they were sampled."""
    for line in json_lines(folder.metrics, _MetricLine, damage):
        yield (
            line.node,
            line.time,
            line.status,
            line.cpu_seconds_total,
            line.memory_bytes,
            None if line.system is None else list(line.system.items()),
        )


def json_lines(path: Path, kind: type[_Line], damage: Damage) -> Iterator[_Line]:
    """Yield the whole lines of a file, none where it is missing; a torn last line is left out."""
    decoder = msgspec.json.Decoder(kind)
    broken = 0
    name = path.name if path.parent.parent.name != "nodes" else f"{path.parent.name}/{path.name}"
    try:
        with path.open("rb") as file:
            for line in file:
                try:
                    yield decoder.decode(line)
                except UNREADABLE:
                    # A killed harness leaves a line without its line feed.
                    broken += line.endswith(b"\n") and bool(line.strip())
    except FileNotFoundError:
        return
    except OSError as error:
        damage.add("file-unreadable", f"{name} cannot be read to its end ({error.strerror}).")
    if broken:
        lines = counted(broken, "line")
        verb = "is" if broken == 1 else "are"
        damage.add("lines-broken", f"{lines} of {name} {verb} broken and left out.")


def json_text(value: Any) -> str:
    """Return JSON with sorted keys: equal values are equal texts."""
    return _VALUES.encode(value).decode()
