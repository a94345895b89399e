"""Nights whose process is killed outright, at each stage: nothing is lost, nothing done beside."""

from pathlib import Path

import msgspec
import pytest

from splitbrain.harness.campaign.nightly.record import NightlyRecord
from tests.awaiting import await_true
from tests.unit.harness.campaign.nightly.fake_nightly import Nightly
from tests.unit.harness.campaign.suite.fake_nights import does, matrix

pytestmark = pytest.mark.timeout(900)

CANARY = matrix("canary", seeds=[1], setting=does("invalid"), expect="invalid")
STEPS = ["ingest", "analyze", "gate"]
#: Far longer than any test: a step that takes so long was killed, or the test fails.
_FOREVER_S = 600
#: A whole night may have to start before.
_NIGHT_S = 300


@pytest.fixture
def nightly(tmp_path: Path) -> Nightly:
    made = Nightly(tmp_path)
    gate = str(made.suites.gate)
    made.suites.write(
        CANARY,
        matrix("good", seeds=[2], setting=made.sets("valid")),
        matrix("late", seeds=[3], setting=made.sets("valid", gate=gate)),
    )
    made.write()
    return made


def is_gone(process: int) -> bool:
    """Whether it has ended; it may wait for whoever inherited it to ask."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return status.rpartition(")")[2].split()[0] in ("Z", "X")


def record_of(nightly: Nightly) -> NightlyRecord:
    (folder,) = nightly.folders()
    return msgspec.json.decode((folder / "nightly.json").read_bytes(), type=NightlyRecord)


def test_a_night_killed_during_a_run_takes_the_run_over(nightly: Nightly) -> None:
    process = nightly.process()
    # Its record is the suite's to write.
    suites = nightly.suites
    await_true(lambda: 3 in suites.logged() and len(suites.orphans()) == 3, _NIGHT_S)
    process.kill()
    process.wait()
    nightly.suites.gate.touch()
    assert nightly.run() == 0, nightly.output
    assert nightly.suites.verdicts() == ["invalid", "valid", "valid"]
    # Each run once, and each step once behind them.
    assert nightly.suites.logged() == [2, 3]
    assert nightly.steps() == STEPS
    assert record_of(nightly).exit_code == 0


def test_a_night_killed_during_a_run_goes_on_although_another_has_ended_before(
    nightly: Nightly,
) -> None:
    suites = nightly.suites
    suites.gate.touch()
    assert nightly.run() == 0, nightly.output
    suites.gate.unlink()
    process = nightly.process()
    await_true(lambda: suites.logged().count(3) == 2 and len(suites.orphans()) == 6, _NIGHT_S)
    process.kill()
    process.wait()
    suites.gate.touch()
    assert nightly.run() == 0, nightly.output
    assert suites.logged() == [2, 3, 2, 3]
    assert len(suites.nights()) == 2
    first, second = nightly.folders()
    assert nightly.steps() == 2 * STEPS
    assert f"Night {second.name}: the gate is green." in nightly.output
    # The one before is over: the same command begins a third.
    assert nightly.run() == 0, nightly.output
    assert nightly.folders()[:2] == [first, second]
    assert len(suites.nights()) == 3


@pytest.mark.parametrize("killed_in", STEPS)
def test_a_step_ends_with_its_night_and_is_done_again(nightly: Nightly, killed_in: str) -> None:
    nightly.suites.gate.touch()
    nightly.takes(killed_in, _FOREVER_S)
    process = nightly.process()
    await_true(lambda: killed_in in nightly.steps(), _NIGHT_S)
    step = nightly.process_of(killed_in)
    assert not is_gone(step)
    process.kill()
    process.wait()
    # Nobody is there to end it, and it must not work beside the next one.
    await_true(lambda: is_gone(step), _NIGHT_S)

    nightly.takes(killed_in, 0)
    assert nightly.run() == 0, nightly.output
    done = STEPS[: STEPS.index(killed_in) + 1]
    assert nightly.steps() == [*done, *STEPS[STEPS.index(killed_in) :]]
    assert len(nightly.suites.nights()) == 1
    assert nightly.suites.verdicts() == ["invalid", "valid", "valid"]
    record = record_of(nightly)
    assert (record.exit_code, list(record.steps)) == (0, [*STEPS, "prune"])


def test_a_step_whose_night_is_dead_before_it_begins_does_nothing(
    nightly: Nightly, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The view of a step whose parent died between its start and its first word.
    monkeypatch.setattr("splitbrain.harness.campaign.nightly.steps.os.getpid", lambda: 1)
    nightly.suites.gate.touch()
    assert nightly.run() == 3
    assert nightly.steps() == []
