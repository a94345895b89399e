"""Each way to prove nothing, through the whole judgement of a run folder: exit code 2, the reason.

The rules alone are tested in ``test_judge_vacuity.py``; here each is met by a folder.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from splitbrain.harness.cli import main as cli
from splitbrain.history.run_folder import RunFolder
from tests.unit.harness.judged_runs import edit_plan, judged, lines

pytestmark = pytest.mark.usefixtures("in_process")

Line = dict[str, Any]
S = 1_000_000_000


def edit(path: Path, change: Callable[[Line], Line | None]) -> None:
    changed = [new for line in lines(path) if (new := change(line)) is not None]
    path.write_text("".join(json.dumps(line) + "\n" for line in changed))


def never_bit(*indexes: int) -> Callable[[Line], Line]:
    def change(event: Line) -> Line:
        if event["index"] in indexes and event["phase"] == "verified":
            event["phase"] = "not-bitten"
        return event

    return change


def keep_operations(folder: RunFolder, keep: Callable[[Line], bool]) -> None:
    """Drop whole operations: those whose invocation is not kept."""
    dropped: set[int] = set()

    def change(event: Line) -> Line | None:
        process = event["process"]
        if event["type"] == "invoke":
            (dropped.discard if keep(event) else dropped.add)(process)
        return None if process in dropped else event

    edit(folder.history, change)
    edit(folder.root / "phases.jsonl", lambda phase: {**phase, "events": 0})


def in_a_fault(event: Line) -> bool:
    return any(
        start * S < event["time"] + S and event["time"] < end * S
        for start, end in ((5, 11), (14, 19), (22, 27))
    )


def no_fault_bit(folder: RunFolder) -> str:
    edit(folder.faults, never_bit(0, 1, 2))
    return "None of the 3 planned faults took effect."


def fewer_than_half_bit(folder: RunFolder) -> str:
    edit(folder.faults, never_bit(0, 1))
    return "Only 1 of the 3 faults that could apply took effect."


def no_operation_in_flight(folder: RunFolder) -> str:
    keep_operations(folder, lambda event: not in_a_fault(event))
    return "No fault hit an operation in flight."


def too_few_results_of_a_kind(folder: RunFolder) -> str:
    kept = iter(range(10_000))
    keep_operations(folder, lambda event: event["f"] != "cas" or next(kept) < 15)
    return "Only 15 operations of kind cas succeeded, 20 are needed."


def nothing_committed_after_the_last_heal(folder: RunFolder) -> str:
    keep_operations(folder, lambda event: event["time"] < 26 * S or event["f"] == "read")
    return "No write that was invoked after the last heal was acknowledged."


def no_state_events_of_an_epoch(folder: RunFolder) -> str:
    def change(event: Line) -> Line:
        return {**event, "role": "observer"} if event.get("role") == "leader" else event

    edit(folder.state_events("n2"), change)  # type: ignore[arg-type]
    return "No node claimed to lead in epoch 2, in which writes were acknowledged."


def no_operation_at_all(folder: RunFolder) -> str:
    keep_operations(folder, lambda event: bool(event.get("final")))
    return "The clients invoked no operation."


@pytest.mark.parametrize(
    "make_vacuous",
    [
        no_fault_bit,
        fewer_than_half_bit,
        no_operation_in_flight,
        too_few_results_of_a_kind,
        nothing_committed_after_the_last_heal,
        no_state_events_of_an_epoch,
        no_operation_at_all,
    ],
)
def test_a_run_that_proves_nothing_ends_with_2_and_the_reason(
    folder: RunFolder, make_vacuous: Callable[[RunFolder], str], capsys: pytest.CaptureFixture[str]
) -> None:
    # Operations that are dropped here would be missed by those who judge them.
    edit_plan(folder, checkers=["split-brain"])
    reason = make_vacuous(folder)
    found = judged(folder)
    assert reason in found.vacuous
    assert (found.headline, found.exit_code) == ("VACUOUS", 2), found.checkers
    assert cli.run(["check", str(folder.root), "--no-analyze"]) == 2
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1].startswith(" VACUOUS  The run proves nothing: ")
    assert reason in printed


def test_a_system_without_state_events_needs_none(folder: RunFolder) -> None:
    for node in folder.node_names():
        folder.state_events(node).unlink()
    plan = {"checkers": ["linearizability:cas-register", "lost-commits"]}
    edit_plan(folder, declares_state_events=False, **plan)
    # Without state events nothing tells the restart after the kill from one by itself either.
    found = judged(folder)
    assert (found.vacuous, found.exit_code) == ((), 0), found.checkers


def test_a_violation_is_told_before_vacuity(folder: RunFolder) -> None:
    edit(folder.faults, never_bit(0, 1, 2))
    log = folder.root / "nodes" / "n1" / "container.log"
    log.write_text("Traceback (most recent call last):\nKeyError: 7\n")
    found = judged(folder)
    assert found.vacuous
    assert (found.headline, found.exit_code) == ("INVALID", 1)
