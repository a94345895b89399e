"""k of n runs: deterministic, wavering, failing; and what simulation leaves of a plan first."""

import itertools
import random
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from splitbrain.contracts.fault import Fault
from splitbrain.contracts.runtime import SIMULATED
from splitbrain.contracts.scenario import LoadOptions, Scenario
from splitbrain.harness.campaign.replaying.verdicts import ReplayVerdict
from splitbrain.harness.campaign.shrinking.exact_oracle import performed_by
from splitbrain.harness.campaign.shrinking.rehearsal import rehearsed
from splitbrain.harness.campaign.shrinking.run_oracle import RunOracle, Try
from splitbrain.harness.campaign.sweep.trial import run
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.folder.scenario_file import read_scenario
from splitbrain.history.run_folder import RunFolder
from splitbrain.nemesis.search import Repetition, SearchBudget
from splitbrain.nemesis.shrinking import shrink
from tests.unit.harness.campaign.shrinking.scripted_runs import OTHER, VALID, WANTED, Silent
from tests.unit.harness.judged_runs import edit_plan
from tests.unit.harness.run_like_containers import SCHEDULE, failed_run

PLAN = Scenario(
    system="any",
    seed=1,
    faults=(Fault(0, "kill", "leader", 2_000_000, 1_000_000, 1),),
    load_us=10_000_000,
    load=LoadOptions(clients=4, rate=40.0),
)


class Case:
    """An oracle whose runs come to these verdicts, one after the other, then to the last."""

    def __init__(
        self,
        verdicts: Sequence[ReplayVerdict | str | None],
        tries: int = 3,
        at_least: int = 2,
        runs_max: int = 100,
        wanted: ReplayVerdict | None = WANTED,
    ) -> None:
        self._verdicts = [*verdicts]
        self.now = 0.0
        self.is_stopped = False
        self.runs = 0
        self.watcher = Silent()
        self.budget = SearchBudget(runs_max, 1000.0, lambda: self.now, lambda: self.is_stopped)
        self.oracle = RunOracle(
            self.run, wanted, Repetition(tries, at_least), self.budget, self.watcher
        )

    def run(self, _shape: Scenario, _number: int) -> Try:
        verdict = self._verdicts[min(self.runs, len(self._verdicts) - 1)]
        self.runs += 1
        self.now += 10
        if isinstance(verdict, str):
            return Try(verdict=None, problem=verdict)
        if verdict is None:
            self.is_stopped = True
        return Try(verdict=verdict)


@pytest.mark.parametrize(
    ("verdicts", "fails", "runs"),
    [
        ([WANTED, WANTED], True, 2),
        ([VALID, VALID], False, 2),
        ([VALID, WANTED, WANTED], True, 3),
        ([WANTED, VALID, VALID], False, 3),
        ([OTHER, OTHER], False, 2),
        ([ReplayVerdict("UNKNOWN"), ReplayVerdict("VACUOUS")], False, 2),
    ],
)
def test_tries_are_made_until_it_is_settled(
    verdicts: list[ReplayVerdict], fails: bool, runs: int
) -> None:
    case = Case(verdicts)
    assert case.oracle.fails(PLAN, "faults") is fails
    assert (case.runs, case.budget.tries) == (runs, runs)
    (answer,) = case.watcher.answers
    assert (answer.tried, answer.fails) == (runs, fails)
    assert answer.otherwise == verdicts[:runs].count(OTHER)
    assert (case.oracle.best is not None) is fails


def test_a_plan_is_asked_about_once_and_any_violation_will_do_where_that_was_asked_for() -> None:
    case = Case([WANTED])
    for _ in range(3):
        assert case.oracle.fails(PLAN, "faults")
    assert (case.runs, case.oracle.plans) == (2, 1)
    assert Case([OTHER], wanted=None).oracle.fails(PLAN, "faults")
    assert not Case([VALID], wanted=None).oracle.fails(PLAN, "faults")


def test_a_try_that_the_harness_could_not_carry_out_is_made_again() -> None:
    case = Case(["no engine", WANTED, "no engine", WANTED])
    assert case.oracle.fails(PLAN, "faults")
    assert case.runs == 4
    assert case.watcher.answers[0].tried == 2
    assert case.budget.broken is None


@pytest.mark.parametrize(
    ("verdicts", "runs_max", "now", "runs", "counts", "why"),
    [
        # A harness that fails again and again.
        (["no engine"], 100, 0.0, 3, (0, 0), "the harness failed"),
        ([WANTED], 1, 0.0, 1, (1, 1), "1 run was made"),
        # An interrupted try counts for nothing.
        ([WANTED, None], 100, 0.0, 2, (1, 1), "interrupted"),
        ([VALID], 100, 1000.1, 0, (0, 0), "1000 s are over"),
    ],
)
def test_an_unsettled_plan_is_not_taken_and_not_refuted(
    verdicts: list[Any], runs_max: int, now: float, runs: int, counts: tuple[int, int], why: str
) -> None:
    case = Case(verdicts, runs_max=runs_max)
    case.now = now
    assert not case.oracle.fails(PLAN, "faults")
    (answer,) = case.watcher.answers
    assert (answer.tried, answer.failed, answer.fails) == (*counts, None)
    assert case.oracle.best is None
    assert (case.runs, case.budget.exhausted()) == (runs, why)
    assert ("no engine" in str(case.budget.broken)) == (verdicts == ["no engine"])


@given(
    seed=st.integers(0, 1 << 30),
    chances=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    asking=st.sampled_from([(1, 1), (3, 2), (5, 1), (4, 4)]),
    runs_max=st.integers(1, 80),
)
def test_a_search_with_wavering_runs_ends_with_what_failed_often_enough(
    seed: int, chances: tuple[float, float], asking: tuple[int, int], runs_max: int
) -> None:
    lot = random.Random(seed)
    seen: dict[bytes, list[bool]] = {}
    faults = tuple(
        Fault(index, "kill", "leader", 2_000_000 + 6_000_000 * index, 1_500_000, 1)
        for index in range(4)
    )

    def run(plan: Scenario, _number: int) -> Try:
        fails = lot.random() < chances[len(plan.faults) % 2]
        seen.setdefault(msgspec.json.encode(plan), []).append(fails)
        return Try(verdict=WANTED if fails else VALID)

    ticks = itertools.count()
    budget = SearchBudget(runs_max, 1e9, lambda: next(ticks))
    oracle = RunOracle(run, WANTED, Repetition(*asking), budget, Silent())
    start = Scenario(
        system="any",
        seed=1,
        faults=faults,
        load_us=30_000_000,
        nodes=5,
        load=LoadOptions(clients=8, rate=80.0),
    )
    shrunk = shrink(start, oracle, budget)
    assert sum(map(len, seen.values())) == budget.tries <= runs_max
    tries, at_least = asking
    assert all(len(answers) <= tries for answers in seen.values())
    if shrunk.plan == start:
        assert oracle.best is None
    else:
        assert oracle.best is not None
        assert oracle.best.plan == shrunk.plan
        assert sum(seen[msgspec.json.encode(shrunk.plan)]) >= at_least


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of a kill and a cut that failed."""
    return failed_run(
        tmp_path_factory.mktemp("runs"),
        schedule=SCHEDULE[:2],
        time_limit_s=1.9,
        rate=100.0,
        concurrency=4,
    )


def test_the_failure_is_found_and_made_small_in_simulation(
    failed: RunFolder, tmp_path: Path
) -> None:
    text = StringIO()
    found = rehearsed(failed, tmp_path, Console(file=text, width=300), Stop(), 120.0)
    assert found.plan is not None, found.lines
    (left,) = found.plan.faults
    assert (left.index, left.kind, left.target) == (1, "partition", "leader")
    assert (found.plan.load_us, found.plan.nodes) == (1_900_000, 3)
    assert found.lines[0].startswith("simulation: seed ")
    assert "2 faults, 1.9 s, 3 nodes, 4 clients -> 1 fault" in found.lines[1]
    (root,) = (tmp_path / "shrunk-like-kraft-register").iterdir()
    # The kept world is the one that failed, and it is that of the plan.
    world = read_scenario(RunFolder(root).scenario)
    assert world.load_us == found.plan.load_us
    assert [fault.index for fault in world.faults] == [1]
    assert performed_by(run(world))


def test_a_time_that_is_over_is_told_and_who_does_not_want_to_wait_is_heard(
    failed: RunFolder, tmp_path: Path
) -> None:
    late = rehearsed(failed, tmp_path, Console(file=StringIO()), Stop(), 0.0)
    assert late.plan is None
    assert late.lines == ("simulation: no seed failed alike within 0 s.",)
    stop = Stop()
    stop.interrupt()
    stopped = rehearsed(failed, tmp_path, Console(file=StringIO()), stop, 60.0)
    assert stopped.plan is None
    assert "interrupted" in stopped.lines[0]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"system": "redis", "bugs": ()}, "the system 'redis' has no simulated nodes"),
        ({"runtime": SIMULATED}, "is a simulated run, which is exact already"),
        ({"concurrency": 5_000}, "one thread does the work of at most 1,000"),
    ],
)
def test_a_run_that_simulation_cannot_be_like_says_why(
    failed: RunFolder, tmp_path: Path, fields: dict[str, object], reason: str
) -> None:
    before = failed.plan.read_bytes()
    try:
        edit_plan(failed, **fields)
        found = rehearsed(failed, tmp_path, Console(file=StringIO()), Stop(), 60.0)
    finally:
        failed.plan.write_bytes(before)
    assert found.plan is None
    assert found.lines[0].startswith("not tried in simulation: ")
    assert reason in found.lines[0]
