"""Sweeps in real worker processes, of seeds that a function of the test tries."""

import os
import re
import shlex
import signal
from collections.abc import Iterator
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.campaign.sweep import sweep as sweeps
from splitbrain.harness.campaign.sweep.command import run_sweep
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.campaign.sweep.sweep import Sweep, SweepOrder, is_checked
from splitbrain.harness.campaign.sweep.sweep_display import SweepDisplay
from splitbrain.harness.campaign.sweep.sweep_tally import SweepTally, failure_class
from splitbrain.harness.campaign.sweep.trial import SeedResult
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.folder.tool_version import this_tool
from splitbrain.harness.pool import workers
from splitbrain.harness.pool.worker_process import resolve
from splitbrain.history.reproduce_line import maker_words
from tests.unit.harness.campaign.sweep.tried_seeds import tried


def order(count: int, ways: dict[int, str] | None = None, **fields: Any) -> SweepOrder:
    options = SimOptions(seeds=range(count), **fields)
    return SweepOrder(options=options, seeds=range(count), try_seed=partial(tried, ways or {}))


@pytest.fixture
def real_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[5]))


class ChildHere:
    """A worker's child without a process: it answers at once, through a pipe to be waited for."""

    is_gone, is_sending, is_alive = False, False, True
    process_id = os.getpid()

    def __init__(self) -> None:
        reading, writing = os.pipe()
        self.output, self.input = os.fdopen(reading, "rb"), os.fdopen(writing, "wb", buffering=0)
        self._answers: list[object] = []
        self._answer(("ready", None))

    def send(self, message: tuple[str, Any]) -> None:
        function, payload = message
        self._answer(("done", resolve(function)(payload, None)))

    def receive(self) -> None:
        os.read(self.output.fileno(), 1)

    def arrived(self) -> Iterator[object]:
        while self._answers:
            yield self._answers.pop(0)

    def close(self) -> None:
        self.input.close()
        self.output.close()

    def _answer(self, answer: object) -> None:
        self._answers.append(answer)
        self.input.write(b".")


def sweep_here(given: SweepOrder) -> Sweep:
    return Sweep(given, Stop(), open_child=ChildHere)  # type: ignore[arg-type]


def test_every_seed_is_tried_once_and_a_share_of_them_twice() -> None:
    told: list[SeedResult] = []
    sweep = sweep_here(order(40, jobs=2, check_share=0.3, trace_hash=True))
    sweep.carry_out(told.append)
    tally = sweep.tally
    again = [result.seed for result in told if result.purpose == "again"]
    assert sorted(again) == [seed for seed in range(40) if is_checked(seed, 0.3)]
    assert (tally.done, tally.checked, tally.mismatches) == (40, len(again), [])
    assert sorted(tally.hashes) == list(range(40))
    assert (tally.virtual_us, tally.operations, tally.steps) == (80_000_000, 200, 400)
    assert tally.figures == {"commits": 80, "highest_epoch": 39}
    assert tally.exit_code(is_whole=True) == 0


def test_what_fails_is_run_again_for_its_folder_and_no_more_than_wanted() -> None:
    ways = {2: "fails", 4: "fails", 5: "puzzles", 6: "fails"}
    tally = carried_out(8, ways, keep=2, check_share=0.0).tally
    assert tally.folders == {2: "/runs/2", 4: "/runs/4"}
    assert [failure.seed for failure in tally.failures] == [2, 4, 6]
    assert (tally.checked, tally.undecided) == (2, 1)
    assert tally.exit_code(is_whole=True) == 1


def carried_out(*arguments: Any, **fields: Any) -> Sweep:
    sweep = sweep_here(order(*arguments, **fields))
    sweep.carry_out()
    return sweep


def test_a_seed_that_comes_out_differently_is_the_harness_failure() -> None:
    tally = carried_out(3, {1: "changes"}, check_share=1.0).tally
    (mismatch,) = tally.mismatches
    assert mismatch.seed == 1
    assert "Seed 1 was run twice" in mismatch.sentence
    assert tally.exit_code(is_whole=True) == 3


@pytest.mark.usefixtures("real_worker")
def test_a_worker_that_dies_takes_its_seed_with_it_and_no_other() -> None:
    sweep = Sweep(order(6, {1: "dies", 3: "crashes"}, jobs=2, check_share=0.0), Stop())
    sweep.carry_out()
    assert sweep.tally.done == 4
    why = {crash.seed: crash.crash for crash in sweep.tally.crashes}
    assert "ended with code 9" in (why[1] or "")
    assert "ZeroDivisionError" in (why[3] or "")
    assert sweep.tally.exit_code(is_whole=True) == 3


@pytest.mark.usefixtures("real_worker")
def test_a_seed_that_never_ends_is_given_up() -> None:
    sweep = Sweep(order(3, {1: "hangs"}, check_share=0.0), Stop(), seed_patience_s=1.0)
    sweep.carry_out()
    (crash,) = sweep.tally.crashes
    assert (crash.seed, crash.crash) == (1, "time budget of 1 s used up, stopped")
    assert sweep.tally.done == 2


def test_failing_fast_ends_with_the_first_failure_and_its_folder() -> None:
    sweep = carried_out(1000, {3: "fails"}, fail_fast=True, check_share=0.0)
    assert sweep.tally.folders == {3: "/runs/3"}
    assert sweep.tally.done == 4
    assert sweep.is_cut_short


def test_a_sweep_in_which_nothing_can_be_run_gives_up() -> None:
    tally = carried_out(1000, dict.fromkeys(range(1000), "crashes")).tally
    assert tally.crashed == sweeps.CRASHES_MAX


def test_a_worker_that_cannot_begin_is_a_failure_of_the_harness(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "_MODULE", "nowhere_at_all")
    sweep = Sweep(order(3), Stop())
    with pytest.raises(HarnessError, match=r"start a worker process.*No module named"):
        sweep.carry_out()


@pytest.mark.usefixtures("real_worker")
def test_an_interrupted_sweep_keeps_what_it_has_and_leaves_no_process() -> None:
    stop = Stop()
    sweep = Sweep(order(1000, {5: "hangs"}, jobs=2, check_share=0.0), stop)
    children: set[int] = set()

    def told(result: SeedResult) -> None:
        children.update(worker.child.process_id for worker in sweep._workers.all)
        if result.seed > 20:
            stop.interrupt()

    sweep.carry_out(told)
    assert sweep.tally.done > 15
    assert sweep.tally.exit_code(is_whole=False) == 2
    for process in children:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def swept(given: SweepOrder) -> tuple[int, str]:
    text = StringIO()
    code = run_sweep(sweep_here(given), Console(file=text, width=120))
    return code, text.getvalue()


def test_a_clean_sweep_tells_its_bound() -> None:
    code, said = swept(order(50, jobs=1))
    assert code == 0
    assert said.splitlines()[0] == "splitbrain sim kraft, seeds 0 to 49, 1 process"
    assert said.splitlines()[-1] == (
        " CLEAN  no alarm in 50 seeds: at 95% confidence fewer than 1 in 17 seeds."
    )
    assert not any(line != line.rstrip() for line in said.splitlines())


def test_a_failing_sweep_tells_seed_finder_sentence_and_replay() -> None:
    code, said = swept(order(9, {4: "fails", 7: "fails"}, keep=1, bugs=("some-bug",)))
    assert code == 1
    assert "FAILED seed 4, INV-01: Two leaders." in said
    assert "splitbrain replay /runs/4" in said
    assert f"splitbrain sim --seed 7 --bug some-bug {shlex.join(maker_words(this_tool()))}" in said
    assert said.splitlines()[-1] == " FAILED  2 of 9 seeds failed."
    assert re.search(r"INV-01 +2 of 2", said)


def test_failures_that_say_the_same_are_one_in_the_summary() -> None:
    ways = {2: "fails", 4: "strays", **dict.fromkeys(range(10, 30), "fails")}
    code, said = swept(order(40, ways, keep=2))
    assert code == 1
    summary = said[said.index("\nFailures\n") :]
    assert summary.count("FAILED") == 3, "two kinds and the verdict"
    assert "  FAILED 21 seeds, INV-01: Two leaders." in summary
    assert "    seeds 2, 10, 11, 12, 13, 14, 15, 16 and 13 more\n" in summary
    assert "  FAILED seed 4, INV-01: n2 forgot 4 votes" in summary
    assert "20 failures without a run folder (--keep), the first of them:\n" in summary
    assert "    splitbrain sim --seed 10 --made-by " in summary
    live = said[: said.index("Summary")]
    assert live.count("FAILED") == 4
    assert "further failures like this one (INV-01) are only counted" in live


def test_what_differs_in_numbers_only_is_one_kind_of_failure() -> None:
    def failed(sentence: str) -> SeedResult:
        return msgspec.structs.replace(tried({1: "fails"}, 1, "first"), sentence=sentence)

    first, second, other = (
        failure_class(failed(sentence))
        for sentence in (
            "n3 fetches from 2, not all of it on disk (n3, 236.6 ms into the run, step 361).",
            "n1 fetches from 1,017, not all of it on disk (n1, 37.3 ms into the run, step 36).",
            "n3 fetches too late.",
        )
    )
    assert first == second != other


def test_what_faults_met_is_added_up_and_told_when_asked_for() -> None:
    # One seed is run twice, and a failing one for its folder; neither counts again.
    _, said = swept(order(9, {4: "fails"}, check_share=1.0, coverage=True))
    assert re.search(r"\n  kill +leader +0 +0 +18 \(9 took effect\) +0\n", said)
    assert re.search(r"\n  fault +register\n  kill +18 \(9 took effect\)\n", said)
    assert re.search(r"\n  Never tried at all: clock-jump, .*, partition, ", said)
    assert "  Never tried kill on a leader in an election or under a new leader; on a f" in said
    assert "roll-back" not in said, "no seed within the promise may draw it"
    _, untold = swept(order(9))
    assert "Never tried" not in untold
    assert re.search(
        r"\n  faults by role +18, one for each role that was met; 9 took effect \(--coverage\)\n",
        untold,
    )


def test_hashes_are_the_last_lines_in_the_order_of_the_seeds() -> None:
    _, said = swept(order(12, jobs=2, trace_hash=True))
    assert said.splitlines()[-12:] == [f"{seed} {seed:032x}" for seed in range(12)]


@pytest.mark.parametrize(
    ("way", "code", "parts"),
    [
        ("crashes", 3, (r"Seed 2 could not be run", r"ZeroDivisionError: here", r"HARNESS FAILED")),
        (
            "puzzles",
            2,
            (
                r"lost-commits +1; seed 2: No logs\.\n",
                r"\n UNKNOWN  No alarm in 4 seeds, 1 of them undecided\.\n$",
            ),
        ),
    ],
)
def test_seeds_without_an_answer_are_told_with_the_reason(
    way: str, code: int, parts: tuple[str, ...]
) -> None:
    actual, said = swept(order(4, {2: way}))
    assert actual == code
    for part in parts:
        assert re.search(part, said)


def test_ctrl_c_sums_up_what_was_done_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_display: SweepDisplay, result: SeedResult) -> None:
        if result.seed == 20:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(SweepDisplay, "took", interrupt)
    code, said = swept(order(10_000_000, {7: "fails"}, keep=0))
    assert code == 1, "what has failed has failed"
    assert "splitbrain sim --seed 7 --made-by " in said
    code, said = swept(order(10_000_000))
    assert code == 2
    assert "INTERRUPTED" in said.splitlines()[-1]
    last = said.splitlines()[-1].replace(",", "")
    assert re.search(r" (\d+) seeds; \d+ not run the first of them seed \1\.$", last)


def test_failing_fast_tells_how_many_seeds_were_not_run() -> None:
    code, said = swept(order(30, {1: "fails"}, fail_fast=True))
    assert code == 1
    assert said.splitlines()[-1] == " FAILED  1 of 2 seeds failed, 28 not run."
    assert "`splitbrain shrink FOLDER` makes the run small." in said


def test_the_first_seed_not_run_is_one_that_others_have_overtaken() -> None:
    tally = SweepTally(first_seed=5)
    for seed in (6, 5, 9, 8):
        tally.take(tried({8: "crashes"}, seed, "first"))
    tally.take(tried({}, 7, "again"))
    assert (tally.tried, tally.first_untried) == (4, 7)
    tally.take(tried({}, 7, "first"))
    assert (tally.tried, tally.first_untried) == (5, 10)
