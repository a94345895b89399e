"""Importer of histories of any origin, as events or operations; the entrance to all formats.

``history.formats`` guesses, one module per format reads, and their output is alike. With
``skip_broken`` unusable lines and operations are left out and counted; the judge of the rest must
then call nothing proven. Must never invent an outcome.
"""

from array import array
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from splitbrain.history.errors import BrokenLine, BrokenLines, HistoryError, PairingError
from splitbrain.history.formats import Format, beginning, guess_format, known_format
from splitbrain.history.identity import operations_apart
from splitbrain.history.pairing import events_of, pair, pair_leniently
from splitbrain.history.raw_operations import (
    ProcessNumbers,
    RawOperation,
    has_independent_keys,
    to_events,
)
from splitbrain.history.reader import HistoryReader
from splitbrain.history.records import Event, PairedOperation
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.spark_extra import require_spark
from splitbrain.history.value_shapes import wrong_shape

#: Line of an event, from 1, and the byte at which it starts.
_Place = tuple[int | None, int | None]


class LoadedHistory(msgspec.Struct, frozen=True):
    """History with the problems of its file."""

    path: Path
    format: Format
    #: By invocation.
    operations: list[PairedOperation]
    #: Events as the file has them, None for formats of whole operations.
    read_events: list[Event] | None = None
    #: Length of a torn last line that was dropped, None if there was none.
    torn_bytes: int | None = None
    #: First omissions, if asked for.
    broken: tuple[BrokenLine, ...] = ()
    #: Number of all omissions.
    broken_count: int = 0
    #: Sentences about the interpretation of the file, where that is not plain.
    notes: tuple[str, ...] = ()
    #: Whether JSON numbers with and without a decimal point occur, see ``history.identity``.
    mixes_numbers: bool = False

    @property
    def events(self) -> list[Event]:
        """Events as the file has them; made from operations if the format has whole ones."""
        return events_of(self.operations) if self.read_events is None else self.read_events


class _Read(msgspec.Struct, frozen=True):
    """Events of a format's reader, or operations if the format has whole ones."""

    events: list[Event] | None = None
    operations: list[PairedOperation] | None = None
    notes: tuple[str, ...] = ()
    #: Place of an event by its index.
    place: Callable[[int], _Place] = lambda _index: (None, None)


def load(
    path: Path,
    history_format: str | None = None,
    *,
    skip_broken: bool = False,
    problem_with: Callable[[PairedOperation], str | None] = lambda _operation: None,
    asks_failed: bool = False,
) -> LoadedHistory:
    """Read a run folder or a bare history into memory.

    Args:
        path: a run folder, a file (packed with gzip or not), a folder of Parquet files, or a
            report folder of etcd's robustness tests.
        history_format: guessed where None.
        skip_broken: leave out and count everything unusable.
        problem_with: problem of an operation's values for its judge, a clause; called once for each
            operation, in their order.
        asks_failed: call it for failed operations, too.

    Raises:
        HistoryError: no such file, unknown format, or a broken history.
        UsageError: there is no such format.
    """
    file = path
    if path.is_dir() and RunFolder(path).history.is_file():
        file = RunFolder(path).history
    chosen = known_format(history_format) if history_format else guess_format(file)
    broken = BrokenLines(file, skip=skip_broken)
    if not file.is_dir() and not beginning(file).strip():
        guess_format(file)  # says that it is empty
    read = _read(file, chosen, broken)
    operations = read.operations
    if operations is None:
        operations = _pair(read, broken, file)
    operations, mixes_numbers = operations_apart(operations)
    operations = _with_sense(operations, read, broken, problem_with, asks_failed=asks_failed)
    return LoadedHistory(
        path=file,
        format=chosen,
        operations=operations,
        read_events=read.events,
        torn_bytes=broken.torn_bytes,
        broken=tuple(broken.first),
        broken_count=broken.count,
        notes=read.notes,
        mixes_numbers=mixes_numbers,
    )


def _read(file: Path, chosen: Format, broken: BrokenLines) -> _Read:
    # Each reader is loaded with the first file of its format, to spare the others the time.
    if chosen == "parquet":
        require_spark("A Parquet history")
        from splitbrain.history.operations_table import read_operations

        processes = ProcessNumbers()
        operations = read_operations(file, broken, processes)
        return _Read(operations=operations, notes=processes.notes)
    if chosen == "etcd-robustness":
        from splitbrain.history.etcd_robustness import read_etcd, refuse_no_files

        refuse_no_files(file)
        etcd = read_etcd(file, broken)
        left_out = ", ".join(f"{why} ({count:,})" for why, count in sorted(etcd.left_out.items()))
        note = "Left out, for it shows nothing of a register: " + left_out + "."
        return _Read(operations=etcd.operations, notes=(note,) if left_out else ())
    if file.is_dir():
        raise HistoryError(
            str(file), f"it is a folder, and the format {chosen} is of files", "Name a file"
        )
    if chosen == "jsonl":
        reader = HistoryReader(file, lines=broken)
        events = list(reader)
        return _Read(events=events, notes=reader.processes.notes, place=_place_in(file))
    from splitbrain.history.jepsen import read_operations

    raw = list(read_operations(file, chosen, broken))
    if chosen == "jepsen-log" and not raw and not broken.count and not broken.torn_bytes:
        problem = "no line of it is an operation"
        raise HistoryError(str(file), problem, "Name the log of a test, or another --format")
    return _read_raw(raw, broken)


def _read_raw(raw: list[RawOperation], broken: BrokenLines) -> _Read:
    lines = array("q", (operation.line for operation in raw))
    offsets = array("q", (operation.byte_offset for operation in raw))
    notes = (
        ("The values are [key value], as jepsen.independent writes them.",)
        if has_independent_keys(raw)
        else ()
    )
    processes = ProcessNumbers()
    events = list(to_events(raw, broken, processes))
    notes = (*notes, *processes.notes)
    return _Read(events=events, notes=notes, place=lambda index: (lines[index], offsets[index]))


def _place_in(file: Path) -> Callable[[int], _Place]:
    def place(index: int) -> _Place:
        reader = HistoryReader(file, lines=BrokenLines(file, skip=True), singly=True)
        for event in reader:
            if event.index == index:
                return reader.line, reader.line_offset
        return None, None

    return place


def _pair(read: _Read, broken: BrokenLines, file: Path) -> list[PairedOperation]:
    events = read.events or []
    if broken.skips:
        operations, refused = pair_leniently(events)
        for error in refused:
            broken.add(None, None, f"{error.target}: {error.problem}")
        return operations
    try:
        return pair(events, foreign=True)
    except PairingError as error:
        line, byte_offset = (None, None) if error.index is None else read.place(error.index)
        where = "" if line is None else f", line {line} at byte {byte_offset}"
        target = f"{file}{where}, {error.target}"
        problem, next_step = error.problem, error.next_step
        raise HistoryError(
            target, problem, next_step, index=error.index, line=line, byte_offset=byte_offset
        ) from error


def _with_sense(
    operations: Sequence[PairedOperation],
    read: _Read,
    broken: BrokenLines,
    problem_with: Callable[[PairedOperation], str | None],
    *,
    asks_failed: bool,
) -> list[PairedOperation]:
    """Return the operations whose values suit their kind and their judge."""
    refused: set[int] = set()
    for operation in operations:
        if operation.type == "fail" and not asks_failed:
            continue
        problem = wrong_shape(operation) or problem_with(operation)
        if problem is not None:
            refused.add(operation.index)
            # Many omissions are not worth reading the file again for each place.
            line, byte_offset = (None, None) if broken.skips else read.place(operation.index)
            who = f"the {operation.f} of process {operation.process}, event {operation.index}"
            broken.add(line, byte_offset, f"{who}: {problem}", index=operation.index)
    if not refused:
        return [*operations]
    return [operation for operation in operations if operation.index not in refused]
