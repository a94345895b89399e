"""The analysis of a whole run folder: results, summary, trouble in one sentence."""

import math
import shutil
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from splitbrain.contracts.analysis.run import RunAnalysis
from splitbrain.contracts.errors import HarnessError
from splitbrain.history.records import Event
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis import analyze as analyze_module
from splitbrain.spark_analysis.analyze import JOBS, analyze
from splitbrain.spark_analysis.schemas import table_of
from splitbrain.spark_analysis.session import FEW_ROWS_MAX, settings_for, spark_session
from tests.spark import reference, reference_findings
from tests.spark.few_parts import only
from tests.spark.planted_reads import read_set, read_stale
from tests.spark.reference import Run
from tests.spark.run_folders import MS, Shape, World

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


class Analysed(NamedTuple):
    """A recording that lost one write everywhere, and its analysis."""

    world: World
    victim: Event
    folder: Path
    analysis: RunAnalysis


@pytest.fixture(scope="module")
def analysed(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Analysed:
    world = World(Shape(seed=31, faults=2, repeated_values=0.0))
    victim = next(event for event in world.acknowledged() if event.f == "write")
    world.lose(victim, nodes=3)
    folder = world.write(tmp_path_factory.mktemp("analysed") / "run")
    return Analysed(world, victim, folder, analyze(folder, session))


def test_summary_has_the_agreed_shape_and_figures(analysed: Analysed) -> None:
    world, victim, folder = analysed.world, analysed.victim, analysed.folder
    run = Run(folder)
    summary = msgspec.to_builtins(analysed.analysis)

    assert msgspec.json.decode(RunFolder(folder).analysis_summary.read_bytes()) == summary
    assert (summary["schema"], summary["run_id"], summary["damage"]) == (1, "run", [])
    kinds = {row["f"] for row in summary["latency"]}
    assert kinds == {"read", "write", "cas"}
    assert sum(row["count"] for row in summary["latency"]) == sum(
        one.type == "ok" for one in run.load
    )
    assert [row["second"] for row in summary["throughput"]] == list(
        range(len(summary["throughput"]))
    )
    assert sum(row["ok"] + row["fail"] + row["info"] for row in summary["throughput"]) == len(
        run.load
    )
    expected = reference.fault_windows(run)
    assert [window["index"] for window in summary["windows"]] == sorted(expected)
    for window in summary["windows"]:
        figures = expected[window["index"]]
        assert window["nodes"] == figures["nodes"]
        assert window["new_epoch"] == figures["new_epoch"]
        assert window["start_ms"] == figures["start_ns"] / 1e6
        assert (window["failover_ms"] is None) == (figures["failover_ms"] is None)
        assert math.isclose(window["availability_during"], figures["availability_during"])
    gap = reference.longest_unavailability(run)
    assert gap is not None
    assert math.isclose(summary["longest_unavailability_ms"], (gap[1] - gap[0]) / 1e6)
    assert summary["unavailability"] == {"start_ms": gap[0] / 1e6, "end_ms": gap[1] / 1e6}
    assert summary["elections"] == len(world.reigns)
    lost = summary["lost"]
    assert (lost["acknowledged"], lost["missing"]) == (len(reference.acknowledged_writes(run)), 1)
    assert (lost["nodes"], lost["logs"]) == (3, 3)
    assert victim.position is not None
    assert lost["examples"][0]["position_offset"] == victim.position[1]
    assert lost["examples"][0]["argument"] == victim.value
    assert summary["phantom"]["unexplained"] == 0
    assert summary["phantom"]["committed"] > 500
    assert {row["node"] for row in summary["leaders"]} <= set(world.nodes)
    assert all(not row["same_epoch"] for row in summary["leader_overlaps"])


def test_summary_tells_what_the_further_jobs_found(session: SparkSession, tmp_path: Path) -> None:
    world = World(Shape(seed=36, faults=3, repeated_values=0.0))
    lost = [event for event in world.acknowledged() if event.f == "write"][3]
    world.lose(lost, nodes=1)
    world.commit("write", "r0", "twice")
    world.commit("write", "r0", "twice")
    read_stale(world)
    read_set(world, "elements", [1, 2, 2, 2, 1])
    reign = world.reigns[-1]
    other = next(node for node in world.nodes if node != reign.node)
    world.lead_as_well(other, reign.epoch, reign.start + 100 * MS)
    folder = world.write(tmp_path / "run")
    run = Run(folder)

    with only("reigns", "divergences", "duplicates", "stale_reads", "client_errors"):
        summary = msgspec.to_builtins(analyze(folder, session))

    timeline = reference_findings.election_timeline(run)
    gaps = sorted((row[5] for row in timeline if row[5]), reverse=True)
    reigns = summary["reigns"]
    assert reigns["count"] == len(timeline) == sum(reigns["ended"].values())
    assert reigns["ended"] == Counter(row[4] for row in timeline)
    assert reigns["leaderless_max_ms"] == gaps[0]
    assert [row["leaderless_ms"] for row in reigns["examples"]] == gaps[:20]

    pairs = reference_findings.first_divergences(run)
    assert summary["divergences"]["pairs"] == len(pairs) == 2
    assert {tuple(row.values()) for row in summary["divergences"]["examples"]} == pairs

    twice = reference_findings.committed_twice(run)
    found = summary["duplicates"]
    assert (found["committed"], found["read"]) == (len(twice), 2)
    assert len(twice) == len(world.nodes)
    assert [(row["node"], row["value"], row["count"]) for row in found["examples"]] == [
        *((node, '"twice"', 2) for node in world.nodes),
        *((world.nodes[0], element, count) for element, count in (("1", 2), ("2", 3))),
    ]

    ages = reference_findings.stale_reads(run.operations)
    stale = summary["stale_reads"]
    assert stale["count"] == len(ages) == 1
    assert stale["age_max_ms"] == next(iter(ages.values()))[0]
    assert stale["age_max_versions"] == next(iter(ages.values()))[1]
    (read,) = stale["examples"]
    by_index = {one.index: one for one in run.operations}
    assert read["index"] in ages
    assert read["result"] == by_index[read["index"]].result
    assert read["start_ms"] == by_index[read["index"]].start / MS

    errors = reference_findings.client_errors(run)
    by_class: Counter[tuple[str, str]] = Counter()
    for (_, _, kind, error), (count, _, _) in errors.items():
        by_class[kind, error] += count
    told = summary["client_errors"]
    assert told["count"] == by_class.total()
    assert {(row["type"], row["error"]): row["count"] for row in told["classes"]} == by_class
    assert min(row["first_ms"] for row in told["classes"]) == min(
        first / MS for _, first, _ in errors.values()
    )


@pytest.mark.nightly
def test_second_analysis_gives_the_same_summary_and_files(
    session: SparkSession, analysed: Analysed, tmp_path: Path
) -> None:
    folder = shutil.copytree(analysed.folder, tmp_path / "run")
    first, second = analysed.analysis, analyze(folder, session)
    assert first == msgspec.structs.replace(second, seconds=first.seconds)
    for row in JOBS:
        place = RunFolder(folder).analysis_result(table_of(row).name)
        assert [path.name for path in place.glob("[!.]*")] == ["part-00000.parquet"]
        stored = pq.read_schema(place / "part-00000.parquet")
        assert stored.names == table_of(row).schema.names


def test_run_without_anything_has_an_empty_summary(session: SparkSession, tmp_path: Path) -> None:
    summary = msgspec.to_builtins(analyze(tmp_path, session))
    for name in ("latency", "throughput", "windows", "leaders", "leader_overlaps"):
        assert summary[name] == []
    assert summary["longest_unavailability_ms"] is None
    assert summary["unavailability"] is None
    assert summary["elections"] == 0
    assert summary["reigns"] == {
        "count": 0,
        "ended": {},
        "leaderless_max_ms": None,
        "examples": [],
    }
    assert summary["divergences"] == {"pairs": None, "examples": []}
    assert summary["duplicates"] == {"committed": None, "read": 0, "examples": []}
    assert summary["stale_reads"]["count"] == 0
    assert summary["client_errors"] == {"count": 0, "classes": []}
    assert summary["damage"] == ["history.jsonl is missing."]


def test_without_any_log_nothing_is_said_about_lost_commits(
    session: SparkSession, tmp_path: Path
) -> None:
    folder = World(Shape(seed=34, faults=0, seconds=2.0)).write(tmp_path / "run")
    for log in folder.glob("nodes/*/log.jsonl"):
        log.unlink()
    with only("lost", "phantom"):
        summary = msgspec.to_builtins(analyze(folder, session))
    assert summary["lost"]["acknowledged"] > 0
    assert summary["lost"]["missing"] is None
    assert summary["phantom"]["unexplained"] is None


def test_what_spark_cannot_do_is_one_sentence(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = World(Shape(seed=35, faults=0, seconds=1.0)).write(tmp_path / "run")
    monkeypatch.setattr(
        analyze_module, "throughput", lambda operations: operations.select("no_such_column")
    )
    with only("throughput"), pytest.raises(HarnessError) as caught:
        analyze(folder, session)
    assert "no_such_column" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not RunFolder(folder).analysis_summary.exists()


def test_running_session_is_handed_out_and_left_running(session: SparkSession) -> None:
    with spark_session() as inner:
        assert inner is session
    assert session.range(3).count() == 3


def test_queries_on_few_rows_alone_are_interpreted_and_settings_are_as_before(
    session: SparkSession,
) -> None:
    name = "spark.sql.codegen.wholeStage"
    before = str(session.conf.get(name))
    session.conf.set(name, "true")
    with settings_for(session, FEW_ROWS_MAX + 1):
        assert session.conf.get(name) == "true"
    with settings_for(session, FEW_ROWS_MAX):
        assert session.conf.get(name) == "false"
    assert session.conf.get(name) == "true"
    session.conf.set(name, before)
