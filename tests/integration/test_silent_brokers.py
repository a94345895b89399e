"""Our nodes on this machine: a broker that dies is fenced, also by a controller that came later."""

from pathlib import Path

import pytest

from splitbrain.checker.verdict import CheckResult
from splitbrain.harness.folder import results
from tests.containers.real_runs import run, verdicts

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PLAN = "bench/suites/planted/silent-through-failover.toml"
SEEDS = (7, 8, 9)
WORDS = (
    *("--system", "kraft", "--state-machine", "metadata", "--runtime", "local"),
    *("--setting", "broker.session.timeout.ms=2000", "--rate", "60", "--time-limit", "26"),
)


def run_with_a_session_over(
    folder: Path, planted: tuple[str, ...]
) -> tuple[CheckResult, results.Results, str]:
    """The verdict on sessions, and that of the run, once a controller has led for long enough.

    On a machine without time none may lead for longer than a session.
    """
    for seed in SEEDS:
        _, found, said = run(folder / str(seed), *WORDS, "--nemesis", PLAN, *planted, seed=seed)
        (sessions,) = (each for each in found.checkers if each.checker == "broker-sessions")
        if sessions.figures["sessions-over"]:
            return sessions, found, said
    raise AssertionError(f"no session was over in {len(SEEDS)} runs")


@pytest.mark.parametrize(
    ("bug", "verdict"),
    [
        ("silent-broker-stays", "invalid"),
        pytest.param("sessions-lost-at-failover", "invalid", marks=pytest.mark.nightly),
        (None, "valid"),
    ],
)
def test_a_broker_that_is_silent_through_a_failover_is_fenced(
    tmp_path: Path, bug: str | None, verdict: str
) -> None:
    planted = () if bug is None else ("--bug", bug)
    sessions, found, said = run_with_a_session_over(tmp_path, planted)
    assert sessions.verdict.value == verdict, said
    wrong = {name for name, told in verdicts(found).items() if told == "invalid"}
    assert wrong <= {"broker-sessions"}, said
