"""Work on the analysis of a run before anybody asks for it, while the run still goes on.

It carries out all jobs on a copy of what the run has so far. Spark loads and compiles most of its
classes when it first needs them, so an analysis that follows takes half its time. A result of a job
that took nothing but operations and faults is kept: once the clients are through, these are whole,
while the nodes are still to be stopped and their logs to be collected. It is used where the files
that both come from are then as they were copied. Must never change anything in the run's folder.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, cast

from pyspark.sql import DataFrame, SparkSession

from splitbrain.contracts.analysis.run import Row
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.scratch_folders import scratch_folder
from splitbrain.spark_analysis.analyze import (
    JOBS,
    JOBS_AT_ONCE,
    Frames,
    Job,
    OverError,
    Ready,
    carry_out,
)
from splitbrain.spark_analysis.frames import RunTables, open_tables
from splitbrain.spark_analysis.ingest import ingest
from splitbrain.spark_analysis.schemas import FAULTS, OPERATIONS, table_of
from splitbrain.spark_analysis.session import are_few, settings_for
from splitbrain.spark_analysis.table_writer import PART_FILE

#: Part of a living run's history that is copied.
_COPIED_BYTES: Final = 32 << 20
#: Tables of what is copied.
_OF_THE_COPY: Final = frozenset({OPERATIONS.name, FAULTS.name})


class Ahead:
    """Results that were found in a copy of a run."""

    def __init__(self, living: RunFolder, copy: RunFolder) -> None:
        self._copy = copy
        self._copied = [copy.plan, copy.history, copy.faults]
        #: Rows of the jobs that took nothing but what was copied.
        self._kept: set[type[Row]] = set()
        for made in self._copied:
            source = living.root / made.name
            with contextlib.suppress(FileNotFoundError), source.open("rb") as file:
                read = file.read(_COPIED_BYTES)
                made.write_bytes(read[: read.rfind(b"\n") + 1])

    def ready_for(self, run_folder: Path) -> Ready:
        """Return the files of results that hold for a run as it is now; of another run none."""
        # A night asks for many runs, whose histories need not be read for this.
        if run_folder.resolve().name != self._copy.root.name:
            return {}
        if any(_content(run_folder / made.name) != _content(made) for made in self._copied):
            return {}
        files = {
            row: self._copy.analysis_result(table_of(row).name) / PART_FILE for row in self._kept
        }
        return {row: file for row, file in files.items() if file.is_file()}

    def watched(self) -> Mapping[type[Row], Job]:
        """Return the jobs, which note what they take."""
        return {row: self._watched(row, job) for row, job in JOBS.items()}

    def _watched(self, row: type[Row], job: Job) -> Job:
        def carried_out(run: RunTables, found: Frames) -> DataFrame:
            taken: set[str] = set()
            tables, results = _Tables(run, taken), _Results(found, taken)
            frame = job(cast("RunTables", tables), cast("Frames", results))
            if taken <= _OF_THE_COPY:
                self._kept.add(row)
            return frame

        return carried_out


class _Tables:
    """Tables of a run; notes the names of those that are taken."""

    def __init__(self, run: RunTables, taken: set[str]) -> None:
        self._run, self._taken = run, taken

    def __getattr__(self, name: str) -> DataFrame:
        self._taken.add(name)
        return getattr(self._run, name)


class _Results:
    """Results of other jobs; notes the tables of those that are taken."""

    def __init__(self, found: Frames, taken: set[str]) -> None:
        self._found, self._taken = found, taken

    def __getitem__(self, row: type[Row]) -> DataFrame:
        self._taken.add(table_of(row).name)
        return self._found[row]


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def work_ahead(
    run_folder: Path, session: SparkSession, is_over: Callable[[], bool]
) -> Iterator[Ahead]:
    """Carry out the jobs on a copy of what a living run has so far; the results go with the block.

    It ends with the jobs under way as soon as ``is_over`` says so.
    """
    with scratch_folder("ahead") as scratch:
        copy = RunFolder(scratch / run_folder.name)
        copy.root.mkdir()
        ahead = Ahead(RunFolder(run_folder), copy)
        size = sum(ingest(copy.root).rows.values())
        with settings_for(session, size), contextlib.suppress(OverError):
            tables = open_tables(session, [copy.root], in_one_piece=are_few(size))
            at_once = JOBS_AT_ONCE if are_few(size) else 1
            carry_out(session, tables, copy, at_once, jobs=ahead.watched(), is_over=is_over)
        yield ahead
