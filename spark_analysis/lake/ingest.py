"""Ingest of new and changed run folders into a lake, in commits of many runs each.

A second ingest changes nothing. A crash leaves files that no commit names: the lake is as it was,
or has the commits that were made. Two ingests at one time both succeed; of a run that both read,
one reading counts for every reader. Damaged runs are read as far as possible, and are marked.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from splitbrain.history.border import foreign_entry
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.damage import Damage
from splitbrain.spark_analysis.ingest import refused_rows
from splitbrain.spark_analysis.lake.commits import Commit, Partition, RunEntry, new_commit_id
from splitbrain.spark_analysis.lake.snapshot import Snapshot, read_snapshot
from splitbrain.spark_analysis.lake.sources import (
    find_missing,
    only_results,
    paths_of,
    sources_of,
    unchanged,
)
from splitbrain.spark_analysis.lake.store import Store
from splitbrain.spark_analysis.lake.writing import PartitionWriter, commit
from splitbrain.spark_analysis.run_record import (
    Identity,
    coverage_rows,
    identify,
    read_conclusions,
    run_row,
    verdict_rows,
)
from splitbrain.spark_analysis.run_rows import Row, ingested_rows, metric_rows
from splitbrain.spark_analysis.schemas import (
    COVERAGE,
    LAKE_TABLES,
    LOGS,
    METRICS,
    OPERATIONS,
    RUNS,
    VERDICTS,
    Table,
)
from splitbrain.spark_analysis.table_writer import BATCH_ROWS

#: Greatest size of run folders, and number of runs, that share a commit and its files.
COMMIT_BYTES: Final = 256 << 20
COMMIT_RUNS: Final = 2_000


class ReadRun(NamedTuple):
    """Run as an ingest found it."""

    run_id: str
    folder: Path
    state: str
    damage: tuple[str, ...]


class Report(NamedTuple):
    """Result of an ingest, of runs or of sweeps."""

    new: list[ReadRun]
    #: Read again: changed since, or read by an older version.
    changed: list[ReadRun]
    #: Folders of unchanged runs in the lake.
    unchanged: list[Path]
    #: Folders that hold a run of another folder, and that one.
    copies: list[tuple[Path, Path]]
    commits: list[str]
    #: Folders that could not be read, and why.
    refused: list[tuple[Path, str]]


class _Candidate(NamedTuple):
    folder: RunFolder
    identity: Identity
    damage: Damage
    is_open: bool
    generation: int
    size_bytes: int


def ingest_runs(
    store: Store,
    folders: Iterable[Path],
    *,
    is_open: Callable[[Path], bool] = lambda _folder: False,
    batch_rows: int = BATCH_ROWS,
    commit_bytes: int = COMMIT_BYTES,
) -> Report:
    """Bring the lake up to date with these run folders.

    Args:
        store: the lake's files.
        folders: of runs, see ``sources.find_runs``.
        is_open: whether the run in a folder is still under way.
        batch_rows: rows of a table that wait to be written.
        commit_bytes: of run folders that share a commit; a run is never divided.

    Raises:
        OSError: the lake cannot be read or written.
        HarnessError: a later version wrote the lake, or a commit took too long.
    """
    snapshot = read_snapshot(store)
    report = Report([], [], [], [], [], [])
    candidates = _candidates(snapshot, folders, is_open, report)
    for group in _groups(candidates, commit_bytes):
        read: dict[str, ReadRun] = {}
        made = _write(store, group, batch_rows, read)
        report.commits.append(made.commit_id)
        for candidate in group:
            runs = report.new if candidate.generation == 1 else report.changed
            runs.append(read[candidate.identity.run_id])
    return report


def _candidates(
    snapshot: Snapshot,
    folders: Iterable[Path],
    is_open: Callable[[Path], bool],
    report: Report,
) -> list[_Candidate]:
    """Return the runs to be read, each once; by partition, so that few files are open at a time."""
    chosen: dict[str, _Candidate] = {}
    versions = {(table.name, table.version) for table in LAKE_TABLES}
    for path in sorted(folders):
        if (found := foreign_entry(path)) is not None:
            report.refused.append((path, f"it holds {found}, which no run makes"))
            continue
        folder = RunFolder(path)
        living = is_open(path)
        damage = Damage()
        identity = identify(folder, damage)
        run_id = identity.run_id
        size = _size(folder)
        other = chosen.get(run_id)
        if other is not None and other.size_bytes >= size:
            report.copies.append((path, other.folder.root))
            continue
        if other is not None:
            report.copies.append((other.folder.root, path))
        known = snapshot.runs.get(run_id)
        generation = 1 if known is None else known[0].generation + 1
        chosen[run_id] = _Candidate(folder, identity, damage, living, generation, size)
    for run_id, candidate in list(chosen.items()):
        known = snapshot.runs.get(run_id)
        if known is None:
            continue
        entry, name = known
        files = snapshot.commits[name].files
        is_current = all((file.table, file.version) in versions for file in files)
        same = entry.is_open == candidate.is_open and is_current
        paths = paths_of(candidate.folder, candidate.identity.nodes)
        if same and unchanged(candidate.folder.root, paths, entry.sources):
            report.unchanged.append(candidate.folder.root)
            del chosen[run_id]
        elif entry.state not in ("pruned", "open") and only_results(candidate.folder):
            # A suite threw away files that the lake was made to keep.
            report.unchanged.append(candidate.folder.root)
            del chosen[run_id]
    return sorted(
        chosen.values(), key=lambda candidate: (_partition(candidate), candidate.identity.run_id)
    )


def _size(folder: RunFolder) -> int:
    try:
        return folder.history.stat().st_size
    except OSError:
        return 0


def _partition(candidate: _Candidate) -> Partition:
    return Partition(candidate.identity.system, candidate.identity.day)


def _groups(candidates: Sequence[_Candidate], commit_bytes: int) -> Iterator[list[_Candidate]]:
    group: list[_Candidate] = []
    size_bytes = 0
    for candidate in candidates:
        is_full = size_bytes + candidate.size_bytes > commit_bytes or len(group) == COMMIT_RUNS
        if group and is_full:
            yield group
            group, size_bytes = [], 0
        group.append(candidate)
        size_bytes += candidate.size_bytes
    if group:
        yield group


def _write(
    store: Store, group: Sequence[_Candidate], batch_rows: int, read: dict[str, ReadRun]
) -> Commit:
    """Read the runs of one commit, write their files, and commit them."""
    began_s = time.monotonic()
    commit_id = new_commit_id()
    entries: list[RunEntry] = []
    writers: list[PartitionWriter] = []
    partitions: dict[Partition, list[_Candidate]] = {}
    for candidate in group:
        partitions.setdefault(_partition(candidate), []).append(candidate)
    for partition, members in partitions.items():
        with PartitionWriter(store, commit_id, partition, batch_rows) as writer:
            for candidate in members:
                entry, found = _read_run(writer, candidate, commit_id, partition)
                entries.append(entry)
                read[entry.run_id] = found
        writers.append(writer)
    files = [file for writer in writers for file in writer.files]
    return commit(store, commit_id, entries, files, began_s=began_s)


def _read_run(
    writer: PartitionWriter, candidate: _Candidate, commit_id: str, partition: Partition
) -> tuple[RunEntry, ReadRun]:
    folder, identity, damage = candidate.folder, candidate.identity, candidate.damage
    # Before anything is read: a run that goes on is then seen to have changed.
    sources = sources_of(folder.root, paths_of(folder, identity.nodes))
    find_missing(folder, identity, sources, damage)
    is_pruned = "pruned" in damage.kinds

    def fill(table: Table, rows: Iterable[Row]) -> int:
        written, refused = writer.fill(table, identity.run_id, rows)
        if refused:
            damage.add("values-refused", refused_rows(table, refused))
        return written

    plan = identity.plan
    functions = {} if plan is None else plan.functions
    forms = {} if plan is None else plan.record_forms
    counts: dict[str, int] = {}
    for table, rows in ingested_rows(folder, functions, identity.nodes, damage, forms):
        if not is_pruned or table not in (OPERATIONS, LOGS):
            counts[table.name] = fill(table, rows)
    fill(METRICS, metric_rows(folder, damage))
    conclusions = read_conclusions(folder, damage)
    fill(VERDICTS, verdict_rows(conclusions))
    fill(COVERAGE, coverage_rows(conclusions))
    operations = counts.get(OPERATIONS.name, 0)
    row = run_row(identity, conclusions, damage, is_open=candidate.is_open, operations=operations)
    fill(RUNS, [row])
    state = damage.state(is_open=candidate.is_open)
    entry = RunEntry(
        run_id=identity.run_id,
        partition=partition,
        generation=candidate.generation,
        ingest=commit_id,
        compaction=0,
        sources=sources,
        is_open=candidate.is_open,
        state=state,
    )
    return entry, ReadRun(identity.run_id, folder.root, state, damage.sentences)
