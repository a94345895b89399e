"""A Spark job is a record, a job with its two lines, and a row of what is shown; a figure two rows.

CONTRIBUTING.md tells where: this adds a dummy in as many places.
"""

from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from splitbrain.contracts.analysis.run import Moment, Row, RunAnalysis, Value
from splitbrain.contracts.figure import Figure, SelectedRun, Subject
from splitbrain.harness.judge import analysis_process
from splitbrain.harness.report import findings
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis import analyze, gate_figures
from splitbrain.spark_analysis.frames import conform
from splitbrain.spark_analysis.gate_process import open_selection
from splitbrain.spark_analysis.schemas import table_of
from tests.spark.reference import Run
from tests.spark.run_folders import Shape, World

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


class SlowWrite(Row, frozen=True):
    table = "slow_writes/1"
    argument: Value
    start_ms: Moment
    took_ms: float


class SlowWrites(msgspec.Struct, frozen=True):
    count: int
    examples: list[SlowWrite]


class Analysis(RunAnalysis, frozen=True, kw_only=True):
    slow_writes: SlowWrites | None = None


def slow_writes(operations: DataFrame) -> DataFrame:
    took = (sql.col("end_ns") - sql.col("start_ns")) / 1e6
    found = operations.where("f = 'write' AND type = 'ok'").withColumn("took_ms", took)
    return conform(found, table_of(SlowWrite))


def part(found: analyze.Results, _: analyze.Counts) -> SlowWrites:
    slow = found[SlowWrite]
    return SlowWrites(slow.count, slow.first("-took_ms", limit=1))


TOLD = findings.ShownPart(
    part="slow_writes",
    title="Slow writes",
    sentence=lambda found: f"{found.count} slow writes." if found.count else "",
    note="{}",
    rows=lambda found: found.examples,
    columns={"wrote": "argument", "at": "start_ms", "took": "took_ms"},
)
FIGURE = Figure(
    name="slow_write_max_ms",
    unit="ms",
    better="lower",
    over="the worst run",
    meaning="longest write",
    samples_of=gate_figures.EVENTS,
)


@pytest.fixture(autouse=True)
def dummy(monkeypatch: pytest.MonkeyPatch) -> None:
    for reader in (analyze, analysis_process):
        monkeypatch.setattr(reader, "RunAnalysis", Analysis)
    monkeypatch.setitem(analyze.JOBS, SlowWrite, lambda run, _: slow_writes(run.operations))
    monkeypatch.setitem(analyze.PARTS, "slow_writes", part)
    monkeypatch.setattr(findings, "TABLES", (*findings.TABLES, TOLD))
    monkeypatch.setattr(gate_figures, "FOUND_FIGURES", (*gate_figures.FOUND_FIGURES, FIGURE))
    values = {FIGURE.name: "max(took_ms)"}
    found = (lambda chosen: slow_writes(chosen.tables.operations), values)
    monkeypatch.setitem(gate_figures.FOUND, "slow writes", found)


def test_a_new_job_goes_from_its_record_to_the_table_the_page_and_the_gate(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The other jobs take ten seconds.
    monkeypatch.setattr(analyze, "JOBS", {SlowWrite: analyze.JOBS[SlowWrite]})
    monkeypatch.setattr(analyze, "PARTS", {"slow_writes": part})
    folder = World(Shape(seed=44, faults=0, seconds=2.0)).write(tmp_path / "run")
    written = [one for one in Run(folder).operations if one.f == "write" and one.type == "ok"]
    slowest = max(written, key=lambda one: (one.end or 0) - one.start)
    took_ms = ((slowest.end or 0) - slowest.start) / 1e6

    analyze.analyze(folder, session)

    stored = pq.read_table(RunFolder(folder).analysis_result("slow_writes"))
    assert stored.schema.names == ["run_id", "argument", "start_ns", "took_ms"]
    assert stored.num_rows == len(written)
    analysis, _ = analysis_process.read_analysis(folder)
    assert isinstance(analysis, Analysis)
    example = SlowWrite(slowest.argument, slowest.start / 1e6, took_ms)
    assert analysis.slow_writes == SlowWrites(len(written), [example])
    sentence = f"{len(written)} slow writes."
    assert sentence in findings.finding_sentences(analysis)
    table = findings.analysis_tables(analysis)[-1]
    assert (table.title, table.note) == ("Slow writes", sentence)
    assert table.rows == [
        [str(slowest.argument), f"{example.start_ms:,.1f} ms", f"{took_ms:,.1f} ms"]
    ]

    run = SelectedRun(str(folder), *("system", "1", "register", "docker"))
    tables, runs, _ = open_selection(session, [run])
    (row,) = gate_figures.gate_figures(tables, runs, [Subject(FIGURE.name)]).collect()
    assert tuple(row) == (FIGURE.name, pytest.approx(took_ms), 1, "run")
