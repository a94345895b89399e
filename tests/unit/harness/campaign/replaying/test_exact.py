"""A simulated run is replayed exactly, or it is said that it was not; replays are counted."""

import signal
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from splitbrain.contracts.errors import UsageError
from splitbrain.harness.campaign.replaying import exact
from splitbrain.harness.campaign.replaying.exact import compare, replay_scenario
from splitbrain.harness.campaign.replaying.options import ReplayOptions
from splitbrain.harness.campaign.replaying.recorded import is_exact
from splitbrain.harness.campaign.replaying.verdicts import (
    INTERRUPTED,
    ReplayVerdict,
    recorded_verdict,
    replay_answer,
    replay_lines,
    verdict_of,
)
from splitbrain.harness.cli import commands
from splitbrain.harness.cli import main as cli
from splitbrain.harness.folder.results import EXIT_INVALID, read
from splitbrain.harness.folder.simulation_outcome import SimulationOutcome
from splitbrain.harness.folder.simulation_record import made_by, record_of
from splitbrain.harness.judge.simulated_outcomes import judged
from splitbrain.harness.report.publishing import judge_and_publish as judge
from splitbrain.harness.run.options import TestOptions
from splitbrain.harness.run.world.folder import keep_sweep_run
from splitbrain.history.plan import decode_plan, encode_plan
from splitbrain.history.run_folder import RunFolder
from tests.plans import changed
from tests.synthetic_runs import write_run
from tests.unit.harness.small_worlds import broken, calm, lying_history, outcome, violation


def kept(given: SimulationOutcome, runs: Path) -> RunFolder:
    return RunFolder(keep_sweep_run(judged(given), runs))


def replayed(folder: RunFolder, **options: object) -> tuple[int, list[str]]:
    text = StringIO()
    console = Console(file=text, width=120)
    code = replay_scenario(folder, console, msgspec.convert(options, ReplayOptions))
    return code, text.getvalue().splitlines()


def test_a_failing_run_fails_again_in_the_same_step_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step.md"))
    folder = kept(broken(), tmp_path)
    code, lines = replayed(folder, times=3)
    # Three that are alike are one thing to tell.
    (annotation,) = capsys.readouterr().err.splitlines()
    assert annotation.startswith("::error title=exact replay")
    assert lines[0] in annotation
    assert (tmp_path / "step.md").read_text().count("failed again") == 1
    seen = broken().violation
    assert seen is not None
    assert code == 1
    assert len(set(lines[:3])) == 1
    assert lines[0].startswith(f"failed again in step {seen.step:,}, same trace")
    assert seen.invariant in lines[0]
    assert lines[3] == "3 of 3 replays failed; 3 had the same trace."


def test_a_run_that_held_holds_again(tmp_path: Path) -> None:
    code, lines = replayed(kept(calm(), tmp_path))
    assert (code, len(lines)) == (0, 1)
    assert lines[0].startswith(f"nothing failed in {calm().steps:,} steps, same trace")


def test_the_story_is_told_line_by_line_with_time_and_step(tmp_path: Path) -> None:
    folder = kept(broken(), tmp_path)
    _, lines = replayed(folder, trace=True)
    assert lines[0].split() == ["ms", "step", "what"]
    steps = [int(line.split()[1].replace(",", "")) for line in lines[1:-1]]
    assert steps == sorted(steps)
    assert any("started" in line for line in lines)
    assert any("violation:" in line for line in lines[-3:])
    _, part = replayed(folder, trace=True, from_step=steps[5])
    assert [line for line in part if line in lines] == part
    assert len(part) < len(lines)


def test_a_replay_can_be_ended_before_its_end_and_then_judges_nothing(tmp_path: Path) -> None:
    folder = kept(broken(), tmp_path)
    code, lines = replayed(folder, until_step=3)
    assert code == 2
    assert lines[0].startswith("stopped after step 3,")
    assert "nothing was judged" in lines[0]
    code, _ = replayed(folder, until_step=10_000_000)
    assert code == 1


def test_another_trace_is_never_passed_off_as_a_verdict() -> None:
    record = record_of(outcome(violation=violation()), None)
    for other in (
        outcome(violation=violation(), trace_hash="1" * 32),
        outcome(violation=violation(step=78)),
        outcome(),
    ):
        sentence, code = compare(record, judged(other))
        assert code == 3
        assert "came out differently: it failed in step 100" in sentence


def test_a_different_trace_of_another_version_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    record = record_of(outcome(), None)
    older = msgspec.structs.replace(record, tool_version="0.0.1", tool_commit="abc")
    sentence, _ = compare(older, judged(outcome(trace_hash="1" * 32)))
    assert sentence.endswith("Another version made the run, so nothing is proven by that.")
    monkeypatch.setattr(exact, "this_tool", lambda: made_by(same))
    same = msgspec.structs.replace(record, tool_commit=None)
    sentence, _ = compare(same, judged(outcome(trace_hash="1" * 32)))
    assert "this is a defect of splitbrain" in sentence


def test_what_checkers_found_is_found_again_and_is_missed_where_it_is_not() -> None:
    lied = outcome(events=lying_history())
    record = record_of(lied, judged(lied))
    sentence, code = compare(record, judged(lied))
    assert code == 1
    assert "failed again, same trace" in sentence
    assert "linearizability:cas-register" in sentence
    sentence, code = compare(record, judged(outcome()))
    assert code == 3
    assert "found nothing now" in sentence


@pytest.mark.parametrize(
    ("runtime", "exact"), [(None, True), ("simulated", True), ("docker", False)]
)
def test_a_simulated_run_is_replayed_exactly_unless_another_runtime_is_named(
    tmp_path: Path, runtime: str | None, exact: bool
) -> None:
    folder = kept(calm(), tmp_path)
    plan = changed(decode_plan(folder.plan.read_bytes()), nemesis="none")
    folder.plan.write_bytes(encode_plan(plan))
    assert is_exact(folder, ReplayOptions(runtime=runtime)) is exact


def test_one_world_of_a_sweep_goes_into_no_container(tmp_path: Path) -> None:
    folder = kept(calm(), tmp_path)
    with pytest.raises(UsageError, match="one world of a sweep"):
        is_exact(folder, ReplayOptions(runtime="docker"))


def test_an_interrupted_replay_tells_what_was_seen_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[SimulationOutcome] = []

    def interrupted_at(count: int, given: SimulationOutcome) -> tuple[int, list[str]]:
        seen.clear()

        def run(*_: object) -> SimulationOutcome:
            if len(seen) == count:
                signal.raise_signal(signal.SIGTERM if count else signal.SIGINT)
            seen.append(given)
            return given

        monkeypatch.setattr(exact, "_run", run)
        return replayed(kept(given, tmp_path / str(count)), times=5)

    code, lines = interrupted_at(2, broken())
    assert code == 1, "what has failed again has failed again"
    assert lines[-1] == "interrupted: 2 of 2 replays failed; 2 had the same trace. 3 were left out."
    code, lines = interrupted_at(1, calm())
    last = "interrupted: 0 of 1 replay failed; 1 had the same trace. 4 were left out."
    assert (code, lines[-1]) == (2, last)
    code, lines = interrupted_at(0, calm())
    none = "interrupted: 0 of 0 replays failed; 0 had the same trace. 5 were left out."
    assert (code, lines) == (2, [none])


STALE = ReplayVerdict("INVALID", ("linearizability:cas-register",))
BRAIN = ReplayVerdict("INVALID", ("linearizability:cas-register", "split-brain"))
VALID = ReplayVerdict("VALID")


def test_same_verdict_means_that_the_same_checkers_found_something_and_violations_come_first() -> (
    None
):
    replays = [*[STALE] * 7, BRAIN, VALID, VALID]
    assert replay_lines(STALE, replays, 10) == [
        "8 of 10 replays failed, 8 of them as the run did: linearizability:cas-register.",
        "   7 invalid (linearizability:cas-register)",
        "   1 invalid (linearizability:cas-register, split-brain)",
        "   2 valid",
    ]
    told = replay_answer(STALE, replays, [1, 1, 0])
    assert (told.exit_code, told.failed, told.alike) == (1, 8, 8)
    assert replay_answer(BRAIN, [VALID, STALE], [0, 1]).alike == 0
    assert replay_answer(None, [STALE], [1]).failed == 1
    lines = replay_lines(BRAIN, [VALID, VALID, STALE], 3)
    assert lines[0].startswith("1 of 3 replays failed, 0 of them as the run did: ")
    assert lines[1:] == ["   1 invalid (linearizability:cas-register)", "   2 valid"]


@pytest.mark.parametrize("recorded", [None, VALID, ReplayVerdict("HARNESS FAILED")])
def test_replays_of_a_run_that_did_not_fail_are_counted_by_violations_alone(
    recorded: ReplayVerdict | None,
) -> None:
    assert replay_lines(recorded, [VALID, STALE], 2)[0] == "1 of 2 replays failed."
    assert replay_lines(recorded, [VALID], 2)[0].endswith("failed. 1 was left out.")
    ended = replay_lines(recorded, [INTERRUPTED], 5)
    assert ended == ["0 of 1 replay failed. 4 were left out.", "   1 interrupted"]


def test_a_verdict_is_made_of_the_headline_and_the_checkers_that_convict(tmp_path: Path) -> None:
    folder = RunFolder(write_run(tmp_path / "run", flaw="stale-read"))
    assert recorded_verdict(folder) is None
    results = judge(folder.root, analyze=False)
    assert recorded_verdict(folder) == verdict_of(results) == STALE
    assert verdict_of(read(folder.results)) == STALE


def test_the_command_tells_the_rate_of_the_recorded_verdict_and_ends_with_the_worst_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder(
        write_run(tmp_path / "kraft-register" / "20261121T020000Z-7", flaw="stale-read")
    )
    assert verdict_of(judge(folder.root, analyze=False)) == STALE
    replayed = [STALE, VALID, STALE]

    def run_once(options: TestOptions, console: Console, *, analyze: bool) -> Any:
        verdict = replayed.pop(0)
        code = EXIT_INVALID if verdict.is_invalid else 0
        return commands.Judged(code, verdict=verdict)

    monkeypatch.setattr(commands, "run_once", run_once)
    assert cli.run(["replay", str(folder.root), "--times", "3"]) == EXIT_INVALID
    printed = capsys.readouterr().out
    assert "2 of 3 replays failed, 2 of them as the run did: linearizability:cas" in printed
    assert "   1 valid" in printed
