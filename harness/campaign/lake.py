"""The command ``ingest``: finds runs and sweeps, puts them into a lake, and reports on each.

Exit code 0 also where runs are damaged: they are reported and marked in the lake; a gate decides
whether they may pass.
"""

import contextlib
from collections import Counter
from collections.abc import Generator, Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.text import Text

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.words import counted
from splitbrain.harness.console.standard_streams import answer
from splitbrain.harness.folder.store import is_alive
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.seed_records import find_sweeps
from splitbrain.spark_analysis.lake.compaction import compact
from splitbrain.spark_analysis.lake.ingest import ReadRun, Report, ingest_runs
from splitbrain.spark_analysis.lake.opening import open_store
from splitbrain.spark_analysis.lake.snapshot import clean
from splitbrain.spark_analysis.lake.sources import find_runs
from splitbrain.spark_analysis.lake.store import Store, local_root
from splitbrain.spark_analysis.lake.sweeps import ingest_sweeps

#: Damaged runs and copies that are listed; the tables have all of them.
_LISTED_MAX = 20


class LakeWork(msgspec.Struct, frozen=True):
    """Arguments of ``ingest``."""

    folders: tuple[Path, ...]
    lake: str
    compact: bool = False
    clean: bool = False


def check_lake(lake: str) -> None:
    """Refuse a lake that names no place, before any work; raise UsageError."""
    root = local_root(lake)
    if root is not None and root.exists() and not root.is_dir():
        raise UsageError(f"the lake {lake} is a file", "Name a folder, or one to be made")


def ingest(work: LakeWork, console: Console) -> int:
    """Do the work, print a report, and return the exit code.

    Raises:
        UsageError: a folder or the lake is missing or empty.
        HarnessError: the lake cannot be read or written.
    """
    check_lake(work.lake)
    found = [_found_in(folder) for folder in work.folders]
    runs = [run for runs, _ in found for run in runs]
    sweeps = [sweep for _, sweeps in found for sweep in sweeps]
    lines: list[str] = []
    told: dict[str, object] = {"lake": work.lake}
    code = 0
    with _one_sentence(work.lake), open_store(work.lake) as store:
        if work.folders:
            report, of_sweeps = _ingest(store, runs), ingest_sweeps(store, sweeps)
            code = HarnessError.exit_code if report.refused or of_sweeps.refused else 0
            if runs:
                lines += _lines(report, work.lake, "run")
            if sweeps:
                lines += _lines(of_sweeps, work.lake, "sweep")
            told |= {"ingested": _as_data(report), "sweeps": _as_data(of_sweeps)}
        elif next(iter(store.files("commits")), None) is None:
            next_step = "Name the one that is meant, or ingest runs first"
            raise UsageError(f"there is no lake in {work.lake}", next_step)
        if work.compact:
            made = compact(store)
            told["compacted"] = made
            files = f"{counted(made.files_before, 'file')} are now {made.files_after:,}"
            done = f"Compacted {counted(made.runs, 'run')}: {files}."
            lines.append(done if made.runs else "Nothing to compact.")
        if work.clean:
            removed = clean(store)
            told["removed"] = removed
            lines.append(
                f"Removed {counted(removed.files, 'file')} ({removed.size_bytes:,} bytes) and "
                f"{counted(removed.commits, 'commit')} that count for nothing any more; "
                f"{removed.spared:,} more are younger than a day."
            )
    for line in lines:
        console.print(Text(line), soft_wrap=True)
    answer(console, {"exit_code": code, **told})
    return code


def _as_data(report: Report) -> dict[str, object]:
    def folders(runs: Sequence[ReadRun]) -> list[dict[str, object]]:
        return [
            {"folder": run.folder, "state": run.state, "damage": list(run.damage)} for run in runs
        ]

    return {
        "new": folders(report.new),
        "changed": folders(report.changed),
        "unchanged": report.unchanged,
        "copies": report.copies,
        "refused": report.refused,
    }


def ingest_after(runs: Sequence[Path], lake: str, console: Console) -> None:
    """Put freshly judged runs into a lake."""
    with _one_sentence(lake), open_store(lake) as store:
        lines = _lines(_ingest(store, [run.resolve() for run in runs]), lake, "run")
    console.print(Text("\n".join(lines)), soft_wrap=True)


def _ingest(store: Store, runs: Sequence[Path]) -> Report:
    return ingest_runs(store, runs, is_open=lambda run: is_alive(RunFolder(run)))


def _found_in(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the folders of runs and of sweeps at or below a folder."""
    # The user may name a link, such as runs/latest; links below it are not followed.
    root = folder.resolve()
    next_step = "Name a run folder, or a folder with runs or sweeps below it"
    if not root.is_dir():
        problem = "is a file" if root.exists() else "is not there"
        raise UsageError(f"{folder} {problem}", next_step)
    try:
        runs = list(find_runs(root))
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be listed ({error.strerror})", "Choose a folder that can be read"
        ) from error
    sweeps = list(find_sweeps(root))
    if not runs and not sweeps:
        problem = f"there is no run in {folder}: no folder with a plan.json or a history.jsonl"
        raise UsageError(problem, next_step)
    return runs, sweeps


def _lines(report: Report, lake: str, noun: str) -> list[str]:
    read = [*report.new, *report.changed]
    total = len(read) + len(report.unchanged)
    counts = f"{len(report.changed):,} read again, {len(report.unchanged):,} as they were"
    lines = [f"{counted(total, noun)} in {lake}: {len(report.new):,} new, {counts}."]
    marked = [one for one in read if one.state not in ("whole", "pruned")]
    if marked:
        states = Counter(one.state for one in marked)
        counts = ", ".join(f"{number:,} {state}" for state, number in sorted(states.items()))
        lines.append(f"Taken as far as they go, and marked: {counts}.")
        for one in marked[:_LISTED_MAX]:
            why = " ".join(one.damage) or "It is still under way."
            lines.append(f"  {one.folder} ({one.state}): {why}")
        if len(marked) > _LISTED_MAX:
            lines.append(f"  and {len(marked) - _LISTED_MAX:,} more")
    for copy, original in report.copies[:_LISTED_MAX]:
        lines.append(f"  {copy} is the {noun} of {original}, and was left out")
    lines += [f"  {folder} was left out: {why}" for folder, why in report.refused]
    if len(report.copies) > _LISTED_MAX:
        lines.append(f"  and {len(report.copies) - _LISTED_MAX:,} more copies")
    return lines


@contextlib.contextmanager
def _one_sentence(lake: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise HarnessError(
            "use the lake",
            str(error.filename or lake),
            error.strerror or str(error),
            "Check that it can be reached and written and that there is room; what was committed "
            "before is not affected.",
        ) from error
