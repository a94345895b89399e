"""The gate's figures equal their plain-Python reference, under every kind of condition."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from splitbrain.contracts.figure import Condition, Dimension, Measured, SelectedRun, Subject
from splitbrain.harness.campaign.gate.gated_run import GatedRun, Outcome
from splitbrain.harness.campaign.gate.gating import measure_with_spark
from splitbrain.harness.campaign.gate.lake_runs import read_lake
from splitbrain.harness.pool.spark_service import VARIABLE, shared_session
from splitbrain.spark_analysis.figure_catalogue import FOUND_FIGURES, SPARK_FIGURES
from splitbrain.spark_analysis.gate_figures import FIGURES, gate_figures
from splitbrain.spark_analysis.gate_process import open_selection
from splitbrain.spark_analysis.lake.ingest import ingest_runs
from splitbrain.spark_analysis.lake.store import LocalStore
from tests.spark.gate_reference import Chosen, figure
from tests.spark.planted_reads import read_set, read_stale
from tests.spark.reference import Run
from tests.spark.run_folders import MS, Shape, World

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SHAPES = (
    Shape(seed=11),
    Shape(seed=12, positionless=0.3, snapshot=True, seconds=6.0),
    Shape(seed=13, faults=5, missing_log=True),
    Shape(seed=14, faults=0, seconds=3.0),
)


def dimensions_of(number: int) -> dict[str, str]:
    return {
        "system": ("kraft", "redis")[number % 2],
        "version": "1",
        "workload": ("register", "set")[number // 2],
        "runtime": "docker",
    }


CONDITIONS: dict[Dimension, tuple[Condition, ...]] = {
    "system": (Condition("system", "kraft"),),
    "version": (Condition("version", "1", is_equal=False),),
    "workload": (Condition("system", "redis"), Condition("workload", "set")),
    "runtime": (Condition("runtime", "docker", is_equal=False), Condition("system", "kraft")),
    "operation": (Condition("operation", "read"), Condition("system", "kraft", is_equal=False)),
    "fault": (Condition("fault", "kill", is_equal=False),),
}
SUBJECTS = [
    Subject(one.name, conditions)
    for one in SPARK_FIGURES
    for dimension in (None, *one.dimensions)
    for conditions in [() if dimension is None else CONDITIONS[dimension]]
]

#: Every figure, and of the conditions one of each dimension and many figures.
SOME = [
    subject for number, subject in enumerate(SUBJECTS) if not subject.conditions or number % 11 == 0
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("runs")
    made: list[Path] = []
    for shape in SHAPES:
        world = World(shape)
        if shape.seed == 11:
            reign = world.reigns[-1]
            other = next(node for node in world.nodes if node != reign.node)
            world.lead_as_well(other, reign.epoch, reign.start + 100 * MS)
            world.commit("write", "r0", "nobody asked for it")
            world.commit("write", "r0", "nobody asked for it")
            read_stale(world)
            world.lose(world.acknowledged()[5], nodes=1)
        if shape.seed == 12:
            # Its elections then have no reason.
            world.faults.clear()
        if shape.seed == 13:
            read_set(world, "elements", [1, 2, 2, 2, 1])
        made.append(world.write(root / f"run-{shape.seed}"))
    empty = root / "run-empty"
    empty.mkdir()
    (empty / "history.jsonl").touch()
    return [*made, empty]


@pytest.mark.parametrize(
    "subjects",
    [
        pytest.param(SOME, id="some"),
        # Each condition of each figure is a plan of its own, and takes a second.
        pytest.param(SUBJECTS, id="all", marks=pytest.mark.nightly),
    ],
)
def test_every_figure_equals_its_reference_under_every_condition(
    session: SparkSession, folders: list[Path], subjects: list[Subject]
) -> None:
    selected = [SelectedRun(str(path), **dimensions_of(n)) for n, path in enumerate(folders[:4])]
    selected.append(SelectedRun(str(folders[4]), **dimensions_of(3)))
    tables, runs, _ = open_selection(session, selected)
    frame = gate_figures(tables, runs, subjects)
    assert [(one.name, one.dataType) for one in frame.schema] == [
        (one.name, one.dataType) for one in FIGURES
    ]
    rows = frame.collect()
    found = {row["subject"]: (row["value"], row["samples"]) for row in rows}
    chosen = [Chosen(Run(path), dimensions_of(min(n, 3))) for n, path in enumerate(folders)]
    expected = {subject.text: figure(subject, chosen) for subject in subjects}
    assert found.keys() == expected.keys()
    for text, (value, samples) in expected.items():
        wanted = value if value is None else pytest.approx(value, rel=1e-12)
        assert found[text] == (wanted, samples), text
    # The run of a least or greatest value has it by itself, and no sum or share has one.
    worst_in = {row["subject"]: row["worst_in"] for row in rows}
    by_id = {row["run_id"]: chosen[n] for n, row in enumerate(runs.collect())}
    for subject in subjects:
        extreme = subject.figure.partition("_ms")[0].endswith(("_max", "_min", "_worst"))
        run, value = worst_in[subject.text], expected[subject.text][0]
        if run is None:
            assert not extreme or not value, subject.text
        else:
            assert extreme, subject.text
            assert figure(subject, [by_id[run]])[0] == pytest.approx(value), subject.text
    assert sum(run is not None for run in worst_in.values()) > 5
    told = [value for value, _ in expected.values() if value is not None]
    assert len(told) > 0.5 * len(expected), "the runs must tell of most figures"
    assert expected["split_brain_epochs"][0] == 1
    assert expected["phantom_commits"][0] == 2
    for name in (one.name for one in FOUND_FIGURES):
        assert expected[name][0], f"{name} must have something to find"
    assert expected["duplicated_elements"] == (2, 1)


def gated(folder: Path | None, name: str, outcome: Outcome = "valid") -> GatedRun:
    return GatedRun(
        name=name,
        folder=folder,
        has_history=folder is not None,
        seed=1,
        outcome=outcome,
        sentence="",
        reproduce="",
        system="kraft",
        version="1",
        workload="register",
        runtime="docker",
    )


@pytest.fixture(scope="module")
def service() -> Iterator[None]:
    """One child process for all questions of this module."""
    with shared_session():
        yield


@pytest.mark.usefixtures("service")
def test_a_child_process_measures_and_says_what_it_leaves_out(folders: list[Path]) -> None:
    subjects = [Subject("latency_p99_ms"), Subject("latency_p99_ms", CONDITIONS["operation"])]
    runs = [gated(folders[0], "a"), gated(None, "b", "failed")]
    answer = measure_with_spark(subjects, runs)
    assert answer.problems == ()
    value, samples = figure(subjects[0], [Chosen(Run(folders[0]), dimensions_of(0))])
    assert answer.figures[subjects[0]] == Measured(pytest.approx(value), samples)  # type: ignore[arg-type]
    assert answer.figures[subjects[1]].value is None
    assert answer.figures[subjects[1]].lack
    assert any("1 run never had a history" in note for note in answer.notes)


@pytest.mark.usefixtures("service")
def test_a_spark_that_cannot_work_leaves_every_figure_unknown(tmp_path: Path) -> None:
    subject = Subject("latency_p99_ms")
    broken = measure_with_spark([subject], [gated(make_broken(tmp_path), "a")])
    (problem,) = broken.problems
    assert problem.startswith("The figures of Spark are missing: could not ingest the run")
    assert broken.figures[subject].value is None


def test_a_spark_that_answers_too_late_leaves_every_figure_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = Subject("latency_p99_ms")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s"))
        silent.listen()
        monkeypatch.setenv(VARIABLE, str(tmp_path / "s"))
        slow = measure_with_spark([subject], [gated(make_broken(tmp_path), "a")], timeout_s=0.01)
    assert slow.problems == ("The figures of Spark did not come within 0.01 s.",)
    assert slow.figures[subject].value is None


def test_runs_that_kept_no_history_leave_every_figure_unknown(folders: list[Path]) -> None:
    subject = Subject("latency_p99_ms")
    pruned = measure_with_spark([subject], [gated(folders[0], "a"), gated(None, "b")])
    assert pruned.figures[subject] == Measured(None, 0, "1 run kept no history")
    nothing = measure_with_spark([subject], [gated(None, "a", "failed")])
    assert nothing.figures[subject].lack == "no run has a history"


def test_the_runs_of_a_lake_have_the_figures_of_their_folders(
    session: SparkSession, folders: list[Path], tmp_path: Path
) -> None:
    lake = str(tmp_path / "lake")
    ingest_runs(LocalStore(tmp_path / "lake"), folders[:3], is_open=lambda _: False)
    runs = list(read_lake(lake).runs)
    assert all(run.has_history for run in runs)
    # One of the three is left out, and one comes from its folder.
    chosen = {name: n for n, name in enumerate(("run-11", "run-12"))}
    by_name = {str(run.replayed_as): run for run in runs}
    kept = by_name["run-11"]
    selected = [
        SelectedRun(None, **dimensions_of(0), lake=lake, run_id=kept.run_id),
        SelectedRun(str(folders[1]), **dimensions_of(1)),
    ]
    tables, rows, _ = open_selection(session, selected)
    subjects = [
        Subject("latency_p99_ms"),
        Subject("failover_max_ms"),
        Subject("split_brain_epochs"),
        Subject("phantom_commits", CONDITIONS["system"]),
    ]
    found = {
        row["subject"]: (row["value"], row["samples"])
        for row in gate_figures(tables, rows, subjects).collect()
    }
    both = [Chosen(Run(folders[n]), dimensions_of(n)) for n in chosen.values()]
    for subject in subjects:
        value, samples = figure(subject, both)
        assert value is not None
        assert found[subject.text] == (pytest.approx(value, rel=1e-12), samples)


def make_broken(root: Path) -> Path:
    """A run into which no table can be written."""
    folder = root / "run"
    folder.mkdir()
    (folder / "history.jsonl").touch()
    (folder / "analysis").touch()
    return folder
