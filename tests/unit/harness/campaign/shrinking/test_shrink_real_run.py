"""``splitbrain shrink`` of a run that was not simulated, its runs scripted."""

import json
import shutil
import signal
import threading
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.fault import Fault
from splitbrain.contracts.scenario import LoadOptions, Scenario
from splitbrain.harness.campaign.shrinking import run_search
from splitbrain.harness.campaign.shrinking.command import shrink
from splitbrain.harness.campaign.shrinking.options import ShrinkOptions
from splitbrain.harness.campaign.shrinking.rehearsal import Rehearsed
from splitbrain.harness.campaign.sweep.planned import record_of_plan
from splitbrain.harness.cli import main as cli
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.plan_choice import plan_faults
from splitbrain.history.plan import decode_plan
from splitbrain.history.run_folder import RunFolder
from splitbrain.nemesis.run_steps import FAULTS_WITH_THEIR_LOAD
from tests.unit.harness.campaign.shrinking.scripted_runs import (
    OTHER,
    VALID,
    WANTED,
    Script,
    ScriptedRuns,
    kept_runs,
    needs,
    ready,
)
from tests.unit.harness.judged_runs import edit_plan
from tests.unit.harness.run_like_containers import SCHEDULE, failed_run


def guess_of(fault: Fault) -> Scenario:
    """Return the part of the run that simulation may leave."""
    load = LoadOptions(clients=3, rate=75.0)
    return Scenario(system="kraft", seed=4, faults=(fault,), load_us=4_000_000, load=load)


NOTHING = Rehearsed(plan=None, lines=("not tried in simulation: it is a test.",))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of three faults that failed."""
    return failed_run(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def failed(made: RunFolder, tmp_path: Path) -> RunFolder:
    root = tmp_path / "runs" / "kraft-register" / made.root.name
    shutil.copytree(made.root, root)
    return RunFolder(root)


class Searched:
    """A search that is over, and what is left of it."""

    def __init__(
        self,
        failed: RunFolder,
        monkeypatch: pytest.MonkeyPatch,
        script: Script,
        rehearsed: Rehearsed = NOTHING,
        during: Callable[[int], None] = lambda _: None,
        **options: Any,
    ) -> None:
        results = failed.results.read_bytes()
        runs = type("Runs", (ScriptedRuns,), {})
        runs.script, runs.results, runs.asked = staticmethod(script), results, []  # type: ignore[attr-defined]
        runs.during = staticmethod(during)  # type: ignore[attr-defined]
        monkeypatch.setattr(run_search, "PlanRuns", runs)
        self.asked: list[Scenario] = runs.asked  # type: ignore[attr-defined]
        self._text = StringIO()
        self.left: list[int] = []
        self.root = failed.root.parent.parent / "shrinking" / failed.root.name
        self.failure: HarnessError | None = None
        self.code = -1
        try:
            self.code = shrink(
                ShrinkOptions(run=failed.root, **options),
                Console(file=self._text, width=300),
                leave=self.left.append,
                ready=ready,
                rehearse=lambda *_: rehearsed,
            )
        except HarnessError as error:
            self.failure = error

    @property
    def told(self) -> str:
        """All that was printed."""
        return self._text.getvalue()

    def plan(self) -> tuple[Fault, ...]:
        """The plan that is left, as `splitbrain test` reads it."""
        nodes = tuple(decode_plan((self.root.parent.parent / "p.json").read_bytes()).nodes)
        return plan_faults(str(self.root / "plan.toml"), nodes, 1, 60_000)[0]

    def ledger(self) -> list[dict[str, Any]]:
        """The lines of the tries."""
        lines = (self.root / "tries.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


Search = Callable[..., Searched]


@pytest.fixture
def search(failed: RunFolder, monkeypatch: pytest.MonkeyPatch) -> Search:
    (failed.root.parent.parent / "p.json").write_bytes(failed.plan.read_bytes())
    return lambda *args, **more: Searched(failed, monkeypatch, *args, **more)


def test_a_run_is_shrunk_to_the_fault_that_it_takes(search: Search, failed: RunFolder) -> None:
    before = {path: path.read_bytes() for path in failed.root.rglob("*") if path.is_file()}
    searched = search(needs(1))
    assert searched.code == 0, searched.failure
    (left,) = searched.plan()
    assert (left.kind, left.target, left.draw) == ("partition", "leader", 6)
    for told in (
        "faults 3 -> 1, seconds ",
        "none of them can go alone; failed with the same verdict in 2 of 2 tries",
        "  fault 1: partition of leader, at ",
    ):
        assert told in searched.told
    # The last folders are those of the plan that is left; all others went.
    kept = kept_runs(searched.root)
    assert len(kept) == 2
    assert f"folder:    {searched.root}/kraft-register/{kept[-1]}" in searched.told
    assert (
        f"replay:    splitbrain replay {searched.root}/kraft-register/{kept[-1]}" in searched.told
    )
    assert "reproduce: splitbrain test --system kraft" in searched.told
    latest = searched.root.parent.parent / "latest"
    assert latest.resolve() == searched.root / "kraft-register" / kept[-1]
    assert {path: path.read_bytes() for path in before} == before


def test_every_try_stands_in_the_ledger(search: Search) -> None:
    searched = search(needs(1))
    ledger = searched.ledger()
    assert len(ledger) == len(searched.asked)
    assert ledger[0]["faults"] == [0, 1, 2]
    assert (ledger[0]["step"], ledger[0]["same"]) == ("the run as it was", True)
    assert {line["verdict"] for line in ledger} == {
        "invalid (linearizability:cas-register)",
        "valid",
    }
    plans = sorted(path.name for path in (searched.root / "plans").iterdir())
    assert plans[0] == "001.toml"


def test_tries_may_all_be_kept(search: Search) -> None:
    searched = search(needs(1), keep_tries=True)
    assert len(kept_runs(searched.root)) == len(searched.asked)


def test_a_run_that_does_not_fail_again_is_not_shrunk(search: Search) -> None:
    searched = search(lambda *_: VALID)
    assert searched.failure is not None
    assert searched.failure.exit_code == 3
    assert "did not fail again with the same verdict in 2 of 3 tries" in str(searched.failure)
    assert "--tries 9 --at-least 1" in str(searched.failure)
    assert len(searched.asked) == 2
    assert kept_runs(searched.root) == []
    assert not (searched.root / "plan.toml").exists()


def test_another_verdict_is_not_the_same(search: Search) -> None:
    searched = search(lambda *_: OTHER)
    assert searched.failure is not None
    assert "plan 1: a try failed otherwise: invalid (lost-commits)" in searched.told
    assert "2 failed otherwise. --any-failure takes any violation" in str(searched.failure)
    assert search(lambda *_: OTHER, any_failure=True, runs=4).code == 0


def test_what_simulation_left_is_confirmed_and_gone_on_with(
    search: Search,
) -> None:
    guess = guess_of(SCHEDULE[1])
    searched = search(needs(1), Rehearsed(plan=guess, lines=("simulation: found.",)))
    assert searched.code == 0
    assert "simulation: found." in searched.told
    assert (searched.asked[0].faults, searched.asked[0].load_us) == (guess.faults, guess.load_us)
    # The run's own plan was never needed.
    assert all(len(plan.faults) <= 1 for plan in searched.asked)


def test_a_guess_that_is_not_confirmed_is_told_and_the_run_itself_is_shrunk(
    search: Search,
) -> None:
    guess = guess_of(SCHEDULE[0])
    searched = search(needs(1), Rehearsed(plan=guess, lines=()))
    assert searched.code == 0
    assert "what simulation left was not confirmed here" in searched.told
    steps = [line["step"] for line in searched.ledger()]
    assert steps[0] == "as simulation left it"
    assert "those faults as the run had them" in steps
    assert [fault.kind for fault in searched.plan()] == ["partition"]


def test_a_guess_that_has_all_of_the_run_but_some_faults_is_asked_about_once(
    search: Search, failed: RunFolder
) -> None:
    """Whatever else simulation says of its world: the seed, and that nobody watches it."""
    start = record_of_plan(decode_plan(failed.plan.read_bytes()), SCHEDULE)
    left = FAULTS_WITH_THEIR_LOAD.keeping(start, SCHEDULE[:1])
    guess = msgspec.structs.replace(left, seed=99, unwatched=True)
    searched = search(needs(1), Rehearsed(plan=guess, lines=()))
    steps = [line["step"] for line in searched.ledger()]
    assert steps[0] == "as simulation left it"
    assert "those faults as the run had them" not in steps


def test_simulation_can_be_left_out(search: Search) -> None:
    guess = Rehearsed(plan=guess_of(SCHEDULE[1]), lines=("never told",))
    searched = search(needs(1), guess, simulate=False)
    assert "never told" not in searched.told
    assert len(searched.asked[0].faults) == 3


def test_a_budget_of_runs_leaves_the_best_so_far(search: Search) -> None:
    for runs_max in (2, 5, 9):
        searched = search(needs(1), runs=runs_max)
        assert searched.code == 0
        assert len(searched.asked) <= runs_max
        assert f"cut short: {runs_max} runs were made" in searched.told
        assert "goes on from here" in searched.told
        shutil.rmtree(searched.root)


def test_a_budget_too_small_for_one_plan_says_that_nothing_is_known(
    search: Search,
) -> None:
    searched = search(needs(1), runs=1)
    assert searched.code == 2
    assert "1 run was made: no plan was settled" in searched.told


def test_a_search_that_is_ended_in_simulation_runs_nothing(
    search: Search,
) -> None:
    searched = search(needs(1), time_limit_s=1e-9)
    assert searched.code == 2
    assert "s are over: nothing was run, and nothing became smaller." in searched.told
    assert searched.asked == []
    assert not searched.root.exists()


def test_ctrl_c_between_two_runs_ends_the_search(
    search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    def during(number: int) -> None:
        if number == 3:
            signal.raise_signal(signal.SIGINT)
            # The handler hands the signal to a thread; the search goes on until that has it.
            heard.wait(5.0)

    heard = threading.Event()
    original = Stop.interrupt

    def interrupt(stop: Stop) -> None:
        original(stop)
        heard.set()

    monkeypatch.setattr(Stop, "interrupt", interrupt)
    searched = search(needs(1), during=during)
    assert searched.code == 2
    assert len(searched.asked) == 4
    assert searched.left == []


def test_a_harness_that_fails_again_and_again_says_why(search: Search) -> None:
    searched = search(lambda *_: "no engine answers")
    assert searched.failure is not None
    assert "no engine answers" in str(searched.failure)
    assert len(searched.asked) == 3


@pytest.mark.parametrize(
    ("ending", "number", "code", "why"),
    [(None, 12, 2, "interrupted"), ("no room on the disk", 10, 3, "the harness failed")],
)
def test_a_search_that_is_cut_short_keeps_the_best_so_far(
    search: Search, ending: str | None, number: int, code: int, why: str
) -> None:
    searched = search(lambda plan, n: ending if n >= number else needs(1)(plan, n))
    assert searched.code == code
    assert f"cut short: {why}" in searched.told
    assert (ending or "") in searched.told
    assert searched.plan()
    # The run that was ended in the middle is no evidence of anything.
    assert ending is not None or len(searched.asked) == number + 1
    assert f"run-{number}" not in kept_runs(searched.root)


def test_a_failure_without_faults_needs_no_plan_file(search: Search) -> None:
    searched = search(lambda *_: WANTED)
    assert searched.code == 0
    assert "  no fault is needed" in searched.told
    assert not (searched.root / "plan.toml").exists()
    assert "plan:  " not in searched.told


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"tries": 0}, "--tries cannot be 0"),
        ({"at_least": 0}, "--at-least cannot be 0"),
        ({"runs": 0}, "--runs cannot be 0"),
        ({"at_least": 4}, "--at-least 4 of --tries 3 can never fail"),
        ({"time_limit_s": 0.0}, "--time-limit cannot be 0"),
        ({"time_limit_s": float("nan")}, "--time-limit cannot be nan"),
    ],
)
def test_numbers_that_cannot_be_are_refused(
    search: Search, options: dict[str, Any], problem: str
) -> None:
    searched = search(needs(1), **options)
    assert isinstance(searched.failure, UsageError)
    assert problem in str(searched.failure)
    assert not searched.root.exists()


def _valid(folder: RunFolder) -> None:
    results = json.loads(folder.results.read_bytes())
    folder.results.write_text(json.dumps({**results, "verdict": "valid", "exit_code": 0}))


@pytest.mark.parametrize(
    ("damage", "options", "says"),
    [
        (_valid, (), "nothing is wrong with "),
        (lambda folder: folder.results.unlink(), (), "nobody has judged "),
        (lambda folder: folder.plan.write_text("{"), (), "plan.json cannot be read"),
        (lambda folder: folder.plan.unlink(), (), "has no plan.json"),
        (lambda folder: folder.schedule.write_text(""), (), "holds 0 of 3 planned faults"),
        (lambda _: None, ("--replays", "5"), "--replays does not fit "),
        (lambda _: None, ("--save-test", "test_it.py"), "--save-test does not fit "),
        (lambda _: None, ("--tries", "1", "--at-least", "2"), "can never fail"),
    ],
)  # fmt: skip
def test_what_cannot_be_shrunk_is_refused_before_anything_is_run(
    failed: RunFolder,
    damage: Callable[[RunFolder], object],
    options: tuple[str, ...],
    says: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damage(failed)
    assert cli.run(["shrink", str(failed.root), *options]) == 64
    assert says in capsys.readouterr().err
    assert not (failed.root.parent.parent / "shrinking").exists()


@pytest.mark.parametrize(
    "option",
    ["--tries=3", "--at-least=1", "--runs=9", "--pinned", "--no-simulate", "--keep-tries"],
)
def test_options_of_real_runs_do_not_fit_a_simulated_one(
    failed: RunFolder, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_plan(failed, runtime="simulated")
    assert cli.run(["shrink", str(failed.root), option]) == 64
    assert f"{option.partition('=')[0]} does not fit " in capsys.readouterr().err
