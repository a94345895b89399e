"""Ingest of sweeps, each a commit with one row of ``sweeps`` and a row of ``seeds`` for each seed.

A sweep is an entry of its commit as a run is, and as a run it is read again where its files have
changed. One that did not come to its end is taken as far as it goes, and marked.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from splitbrain.history import seed_records
from splitbrain.history.seed_records import (
    ANSWER,
    SeedLine,
    SweepEnd,
    SweepFolder,
    contradiction,
)
from splitbrain.spark_analysis.damage import Damage
from splitbrain.spark_analysis.ingest import refused_rows
from splitbrain.spark_analysis.lake.commits import Partition, RunEntry, new_commit_id
from splitbrain.spark_analysis.lake.ingest import ReadRun, Report
from splitbrain.spark_analysis.lake.snapshot import read_snapshot
from splitbrain.spark_analysis.lake.sources import sources_of, unchanged
from splitbrain.spark_analysis.lake.store import Store
from splitbrain.spark_analysis.lake.writing import PartitionWriter, commit
from splitbrain.spark_analysis.run_record import UNKNOWN, instant, is_folder_name
from splitbrain.spark_analysis.run_rows import Row, json_text
from splitbrain.spark_analysis.schemas import SEEDS, SWEEPS
from splitbrain.spark_analysis.table_writer import BATCH_ROWS

_US_PER_MS = 1_000


def ingest_sweeps(store: Store, folders: Iterable[Path], *, batch_rows: int = BATCH_ROWS) -> Report:
    """Bring the lake up to date with the sweeps in these folders.

    Raises:
        OSError: the lake cannot be read or written.
        HarnessError: a later version wrote the lake, or a commit took too long.
    """
    snapshot = read_snapshot(store)
    versions = {(table.name, table.version) for table in (SWEEPS, SEEDS)}
    report = Report([], [], [], [], [], [])
    places: dict[str, Path] = {}
    for path in sorted(folders):
        try:
            folder = SweepFolder(path)
        except ValueError as error:
            report.refused.append((path, f"{error}."))
            continue
        if (other := places.setdefault(folder.sweep_id, path)) is not path:
            report.copies.append((path, other))
            continue
        generation = 1
        if (known := snapshot.runs.get(folder.sweep_id)) is not None:
            entry, name = known
            is_current = {
                (file.table, file.version) for file in snapshot.commits[name].files
            } <= versions
            if is_current and unchanged(path, _paths(path), entry.sources):
                report.unchanged.append(path)
                continue
            generation = entry.generation + 1
        read, commit_id = _write(store, folder, generation, batch_rows)
        report.commits.append(commit_id)
        (report.new if generation == 1 else report.changed).append(read)
    return report


def _paths(root: Path) -> list[Path]:
    return [root / seed_records.SEEDS, root / ANSWER]


def _write(
    store: Store, folder: SweepFolder, generation: int, batch_rows: int
) -> tuple[ReadRun, str]:
    began_s = time.monotonic()
    sweep, sweep_id, commit_id = folder.sweep, folder.sweep_id, new_commit_id()
    # Before anything is read: a sweep that goes on is then seen to have changed.
    sources = sources_of(folder.root, _paths(folder.root))
    damage = Damage()
    end = _end(folder, damage)
    started = instant(sweep.started_at)
    partition = Partition(
        sweep.system if is_folder_name(sweep.system) else UNKNOWN,
        UNKNOWN if started is None else started.date().isoformat(),
    )
    counts: Counter[str] = Counter()
    with PartitionWriter(store, commit_id, partition, batch_rows) as writer:
        _, refused = writer.fill(SEEDS, sweep_id, _seed_rows(folder, end, counts, damage))
        if refused:
            damage.add("values-refused", refused_rows(SEEDS, refused))
        if end is not None and not damage.kinds:
            told = contradiction(sweep, end, counts["seeds"], counts["failed"])
            if told is not None:
                damage.add("changed-since", f"{told}.")
        state = damage.state(is_open=False)
        row: Row = (
            sweep.seeds,
            sweep.planned - (0 if end is None else end.skipped),
            list(sweep.bugs),
            sweep.state_machine,
            sweep.beyond_promise,
            list(sweep.patches),
            started,
            sweep.tool_version,
            sweep.tool_commit,
            None if end is None else end.exit_code,
            *(counts[name] for name in ("clean", "failed", "undecided", "crashed", "differed")),
            state,
            list(damage.kinds),
            list(damage.sentences),
        )
        writer.fill(SWEEPS, sweep_id, [row])
    entry = RunEntry(
        run_id=sweep_id,
        partition=partition,
        generation=generation,
        ingest=commit_id,
        compaction=0,
        sources=sources,
        is_open=False,
        state=state,
    )
    commit(store, commit_id, [entry], writer.files, began_s=began_s)
    return ReadRun(sweep_id, folder.root, state, damage.sentences), commit_id


def _end(folder: SweepFolder, damage: Damage) -> SweepEnd | None:
    try:
        end = folder.end()
    except ValueError as error:
        damage.add("results-unreadable", f"{error}.")
        return None
    if end is None:
        damage.add("no-results", f"{ANSWER} is missing: the sweep did not come to its end.")
    return end


def _seed_rows(
    folder: SweepFolder, end: SweepEnd | None, counts: Counter[str], damage: Damage
) -> Iterator[Row]:
    """Yield rows of ``seeds``, counted by outcome; a broken line is the last."""
    differed = set() if end is None else end.again_otherwise
    kept = {} if end is None else {failed.seed: failed.folder for failed in end.failures}
    try:
        for line in folder.lines(SeedLine):
            counts["seeds"] += 1
            counts[line.outcome] += 1
            has_differed = line.seed in differed and line.outcome != "crashed"
            counts["differed"] += has_differed
            yield _row(line, kept.get(line.seed), has_differed=has_differed)
    except ValueError as error:
        damage.add("lines-broken", f"Taken up to a broken place: {error}.")


def _row(line: SeedLine, kept: str | None, *, has_differed: bool) -> Row:
    return (
        line.seed,
        line.outcome,
        has_differed,
        line.workload,
        list(line.failed_by),
        [found.fingerprint for found in line.found],
        line.sentence,
        json_text(line.found),
        json_text(line.unknown),
        line.trace_hash,
        line.steps,
        line.virtual_us / _US_PER_MS,
        line.operations,
        line.faults,
        line.bitten,
        line.figures.get("elections"),
        {name: float(count) for name, count in line.figures.items()},
        1000 * line.seconds,
        kept,
        line.reproduce,
    )
