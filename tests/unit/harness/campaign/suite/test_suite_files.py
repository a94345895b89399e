"""Suite files: allowed content, the order of runs, and how a wrong one is refused."""

import re
from pathlib import Path

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.harness.campaign.suite.cells import planned_runs, seeds_of
from splitbrain.harness.campaign.suite.definition import (
    FreshSeeds,
    Matrix,
    PlannedRun,
    Program,
    Suite,
)
from splitbrain.harness.campaign.suite.reading import check_cells, experiment_of, plan, read_suite
from splitbrain.harness.cli import main as cli
from tests.unit.harness.campaign.suite.fake_nights import Suites, does, matrix, program

ROOT = Path(__file__).parents[5]
GOOD = matrix("good", seeds="0:2")


def planned(suites: Suites, *parts: str, night_seed: int = 0) -> tuple[PlannedRun, ...]:
    suites.write(*parts)
    return plan(read_suite(suites.file), night_seed)


def test_cells_are_the_product_of_the_lists(suites: Suites) -> None:
    runs = planned(
        suites,
        matrix("m", workload=["register", "set"], nodes=[3, 5], nemesis="none", seeds=7),
    )
    assert [run.cell for run in runs] == [
        "m: workload=register nodes=3",
        "m: workload=register nodes=5",
        "m: workload=set nodes=3",
        "m: workload=set nodes=5",
    ]
    assert runs[0].arguments == (
        *("--workload", "register", "--nemesis", "none", "--nodes", "3"),
        *("--seed", "7", "--no-analyze"),
    )
    assert [run.number for run in runs] == [1, 2, 3, 4]


def test_every_option_reaches_the_command_line(suites: Suites) -> None:
    (run,) = planned(
        suites,
        matrix(
            "m",
            system="redis",
            runtime="docker",
            time_limit=2.5,
            concurrency=4,
            rate=50,
            operation_timeout=0.5,
            bug=[["one", "two"]],
            setting={"fetch.ms": 5, "fast": True},
            workload_option={"values": "small"},
            seeds=1,
            analyze=True,
            arguments=["--keep-data"],
        ).replace("fetch.ms", "'fetch.ms'"),
    )
    assert run.arguments == (
        *("--system", "redis", "--runtime", "docker", "--time-limit", "2.5"),
        *("--concurrency", "4", "--rate", "50", "--operation-timeout", "0.5"),
        *("--bug", "one", "--bug", "two", "--setting", "fetch.ms=5", "--setting", "fast=true"),
        *("--workload-option", "values=small", "--seed", "1", "--analyze", "--keep-data"),
    )
    assert run.least_s == 2.5


def test_cells_can_be_left_out_and_added(suites: Suites) -> None:
    runs = planned(
        suites,
        matrix(
            "m",
            workload=["register", "set"],
            nodes=[3, 5],
            exclude=[{"workload": "set", "nodes": 5}],
            include=[{"nodes": 7}],
        ),
    )
    assert [(run.options["workload"], run.options["nodes"]) for run in runs] == [
        ("register", 3),
        ("register", 5),
        ("set", 3),
        ("register", 7),
    ]


def test_planted_bugs_come_first_and_then_each_cell_in_turn(suites: Suites) -> None:
    runs = planned(
        suites,
        matrix("many", seeds="0:3"),
        matrix("two", workload=["register", "set"], seeds="0:2"),
        matrix("planted", bug="b", expect="invalid", seeds="0:2"),
        program("campaign", "true", seeds=[5]),
    )
    assert [(run.matrix, run.options.get("workload"), run.seed) for run in runs] == [
        ("planted", None, 0),
        ("planted", None, 1),
        ("many", None, 0),
        ("two", "register", 0),
        ("two", "set", 0),
        ("campaign", None, 5),
        ("many", None, 1),
        ("two", "register", 1),
        ("two", "set", 1),
        ("many", None, 2),
    ]


def test_fresh_seeds_differ_by_night_and_cell_and_come_again(suites: Suites) -> None:
    text = matrix("m", workload=["register", "set"], seeds={"count": 20})
    first, again = planned(suites, text, night_seed=1), planned(suites, text, night_seed=1)
    other = planned(suites, text, night_seed=2)
    assert first == again
    seeds = [
        {run.seed for run in first if run.options["workload"] == w} for w in ("register", "set")
    ]
    assert [len(some) for some in seeds] == [20, 20]
    assert len(seeds[0] & seeds[1]) <= 1
    assert len({run.seed for run in first} & {run.seed for run in other}) <= 1


def test_more_seeds_leave_the_first_ones_as_they_were() -> None:
    assert seeds_of(FreshSeeds(5), 3, "c") == seeds_of(FreshSeeds(9), 3, "c")[:5]


def test_the_shipped_suites_can_be_run_by_this_version() -> None:
    for path in sorted((ROOT / "bench" / "suites").glob("*.toml")):
        runs = plan(read_suite(path), 1)
        check_cells(path, runs)
        assert {run.expect for run in runs} == {"valid", "invalid"}, path


def test_the_documented_suite_can_be_run_by_this_version(suites: Suites) -> None:
    text = (ROOT / "docs" / "suite.md").read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    suites.file.write_text(example)
    runs = plan(read_suite(suites.file), 1)
    check_cells(suites.file, runs)
    cells = {run.cell for run in runs if run.matrix == "random faults"}
    # Two workloads, two plans, two sizes and two settings, without sets on five nodes, and one.
    assert len(cells) == 2 * 2 * 2 * 2 - 4 + 1


def test_every_axis_of_a_matrix_is_documented() -> None:
    text = (ROOT / "docs" / "suite.md").read_text()
    fields = {*Suite.__struct_fields__, *Matrix.__struct_fields__, *Program.__struct_fields__}
    told = set(re.findall(r"`([a-z_]+)`", text)) | set(
        re.findall(r"^([a-z_]+) = ", text, re.MULTILINE)
    )
    told |= set(re.findall(r"\[\[(\w+)\]\]", text)) | set(re.findall(r"`([a-z_]+) = ", text))
    assert fields <= told


def test_the_nightly_suite_covers_what_the_issue_asks_for() -> None:
    runs = plan(read_suite(ROOT / "bench" / "suites" / "nightly.toml"), 1)
    planted = {str(run.options["bug"]) for run in runs if run.expect == "invalid"}
    assert planted >= {"['stale-leader-reads']", "['ack-before-commit']"}
    random = [run for run in runs if run.options.get("nemesis") == "partition,pause,kill"]
    assert {str(run.options["workload"]) for run in random} == {"register", "set"}
    assert len([run for run in random if run.options.get("nodes", 3) == 3]) == 40


def test_plan_files_are_named_relative_to_the_suite(suites: Suites) -> None:
    (run,) = planned(suites, matrix("m", nemesis="plans/cut.json"))
    assert run.options["nemesis"] == str(suites.folder / "plans" / "cut.json")


@pytest.mark.parametrize(
    ("written", "seconds"), [("45", 45), ("'45'", 45), ("'1m30s'", 90), ("'500ms'", 0.5)]
)
def test_times_of_cells_have_units(suites: Suites, written: str, seconds: float) -> None:
    text = f"[[matrix]]\nname = 'm'\ntime_limit = {written}\noperation_timeout = ['2s']"
    (run,) = planned(suites, text)
    experiment = experiment_of(run)
    assert (experiment.time_limit_s, experiment.operation_timeout_s) == (seconds, 2)


@pytest.mark.parametrize(("written", "seeds"), [("7", [7]), ("'7'", [7]), ("'3:5'", [3, 4])])
def test_seeds_are_one_or_a_range(suites: Suites, written: str, seeds: list[int]) -> None:
    runs = planned(suites, f"[[matrix]]\nname = 'm'\nseeds = {written}")
    assert [run.seed for run in runs] == seeds


REFUSED = [
    ("", "has no [[matrix]] and no [[program]]"),
    ("nonsense", "is no TOML"),
    ("jobs = 0\n" + GOOD, "jobs: expected `int` >= 1"),
    ("nights = 3\n" + GOOD, "there is no field 'nights'"),
    ("time_budgett = 3\n" + GOOD, "Did you mean 'time_budget'?"),
    ("time_budget = '8 hours'\n" + GOOD, "'8 hours' is no time; write 60, 500ms, 45s, 1m or 1h30m"),
    (f"{GOOD}\n{GOOD}", "has two parts named 'good'"),
    (GOOD + "\nsytem = 'kraft'", "matrix 1 ('good'): there is no field 'sytem'"),
    (GOOD + "\nnodes = 'three'", "matrix 1 ('good'), nodes: expected `int | array | null`"),
    (GOOD + "\nnodes = []", "matrix 'good': the list nodes is empty"),
    (GOOD + "\nworkload = ['set', 'set']", "the same cell stands in it twice"),
    (GOOD + "\nexclude = [{nodes = 4}]", "exclude number 1 meets no cell"),
    (GOOD + "\nnodes = [3]\nexclude = [{nodes = 3}]", "no cell is left"),
    (GOOD + "\nexclude = [{node = 4}]", "exclude 1: there is no field 'node'"),
    (GOOD + "\nexpect = 'green'", "('good'), expect: invalid enum value 'green'"),
    (GOOD + "\nat_least = 1", "at_least and caught_by belong to expect = 'invalid'"),
    (GOOD + "\nexpect = 'invalid'\nat_least = 3", "at_least is 3, but each cell has 2 seeds"),
    (GOOD + "\nrun_timeout = 0", "run_timeout: 0 is no time above 0"),
    (matrix("m", seeds="some"), "matrix 'm': seeds cannot be 'some'. Write one seed or FIRST:END"),
    (matrix("m", seeds="5:5"), "seeds 5:5 is empty: 5 does not come after 5"),
    (matrix("m", seeds=[]), "seeds names no seed"),
    (matrix("m", seeds=[1, 1]), "seeds must be distinct numbers from 0 up"),
    (matrix("m", seeds=[-1]), "seeds must be distinct numbers from 0 up"),
    (matrix("m", seeds="0:999999"), "at most 100000 are run in a night"),
    (matrix("m", seeds={"count": 0}), "('m'), seeds, count: expected `int` >= 1"),
    (matrix("m", seeds={"number": 4}), "('m'), seeds: there is no field 'number'"),
    ("[[matrix]]\nseeds = 1", "matrix 1: object missing required field `name`"),
    (matrix("../m"), "name: a name is letters, digits, spaces and . _ -, at most 60"),
    (matrix("a cut, protected"), "name: a name is letters, digits, spaces and . _ -"),
    (program("p"), "program 'p': command is empty"),
    (program("p", "true", timeout="soon"), "program 'p': 'soon' is no time"),
    ("[[program]]\nname = 'p'", "program 1 ('p'): object missing required field `command`"),
]


@pytest.mark.parametrize(("text", "sentence"), REFUSED)
def test_a_wrong_file_is_refused_in_one_sentence_that_names_the_place(
    suites: Suites, text: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    suites.file.write_text(f"name = 'unit'\n{text}\n")
    code = cli.run(["suite", str(suites.file), "--runs-folder", str(suites.folder / "runs")])
    said = capsys.readouterr().err
    assert (code, said.count("\n")) == (64, 1), said
    assert sentence in said
    assert not (suites.folder / "runs").exists()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"bug": "stale-reads"}, "the system 'kraft' has no planted bug 'stale-reads'"),
        ({"workload": ["set", "sets"]}, "'m: workload=sets' cannot be run"),
        ({"nemesis": "isolate-leaders"}, "Did you mean 'isolate-leader'"),
        ({"runtime": "dokcer"}, "there is no runtime 'dokcer'"),
        ({"system": "krafty"}, "there is no system called 'krafty'"),
        ({"time_limit": 0}, " time_limit cannot be 0"),
        (
            {"nemesis": "leader-kill", "time_limit": 8},
            "of 8 s. Choose a time_limit of at least 9, or nemesis none",
        ),
    ],
)
def test_a_cell_that_cannot_be_run_is_told_before_anything_starts(
    suites: Suites, fields: dict[str, object], sentence: str
) -> None:
    suites.write(matrix("m", **fields))
    with pytest.raises(UsageError) as refused:
        suites.run(check=True)
    assert sentence in str(refused.value)
    assert "suite.toml" in str(refused.value)
    assert suites.lines() == []


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_suite(tmp_path / "none.toml")


def test_a_program_gets_its_seed(suites: Suites) -> None:
    suites.write(program("p", "true", seeds=[4, 6]))
    runs = planned_runs(read_suite(suites.file).suite, 0)
    assert [(run.is_program, run.seed, run.timeout_s) for run in runs] == [
        (True, 4, 5),
        (True, 6, 5),
    ]
    assert does("x") == {"does": "x"}
