"""Time budgets of nights, matrices and runs: what is cut off, and what is said of it."""

import json
from pathlib import Path

from splitbrain.harness.campaign.suite.agenda import Agenda
from splitbrain.harness.campaign.suite.cells import planned_runs
from splitbrain.harness.campaign.suite.ledger import NightEnded
from splitbrain.harness.campaign.suite.reading import read_suite
from tests.unit.harness.campaign.suite.fake_nights import Suites, does, matrix

PLANTED = matrix("planted", setting=does("invalid"), expect="invalid", seeds=[90])
GOOD = matrix("good", setting=does("valid"), seeds="0:2")


def test_a_budget_that_is_used_up_is_said_and_what_was_not_covered_is_not_green(
    suites: Suites,
) -> None:
    suites.write(matrix("m", setting=[does("valid"), does("vacuous")], time_limit=1))
    assert suites.run(time_budget="0.9s") == 2
    assert suites.runs() == []
    assert "Not done, since the time budget was used up" in suites.output
    assert "m: setting=does=valid: 0 of 1 runs; nothing is known of it" in suites.output
    assert isinstance(suites.lines()[-1], NightEnded)


def test_a_night_cut_before_its_planted_bug_is_void(suites: Suites) -> None:
    suites.write(PLANTED + "\ntime_limit = 9", GOOD + "\ntime_limit = 0.1")
    assert suites.run(time_budget="8s") == 3
    assert suites.verdicts() == ["valid", "valid"]
    assert "1 expected violation never looked for" in suites.output
    assert "planted: not run, and at least 1 must find it" in suites.output
    assert "no run in which a violation is expected was made" in suites.output


def test_a_budget_covers_every_cell_before_any_cell_twice(suites: Suites) -> None:
    suites.write(matrix("m", time_limit=10, nodes=[3, 5, 7], seeds="0:4"))
    clock_s = 0.0
    runs = planned_runs(read_suite(suites.file).suite, 0)
    agenda = Agenda(runs, budget_s=45, clock=lambda: clock_s)
    taken: list[object] = []
    while (run := agenda.take()) is not None:
        taken.append(run.options["nodes"])
        clock_s += 12
    assert taken == [3, 5, 7]
    assert len(agenda.cut) == 9


def test_a_matrix_has_a_budget_of_its_own(suites: Suites) -> None:
    suites.write(
        matrix("dear", time_limit=10, time_budget=25, seeds="0:4"),
        matrix("cheap", time_limit=10, seeds="0:2"),
    )
    agenda = Agenda(planned_runs(read_suite(suites.file).suite, 0), budget_s=None)
    taken: list[str] = []
    while (run := agenda.take()) is not None:
        taken.append(run.matrix)
        agenda.spent(run, 12)
    assert taken == ["dear", "cheap", "dear", "cheap"]


def test_time_used_before_a_crash_counts(suites: Suites) -> None:
    suites.write(matrix("m", setting=does("valid"), seeds="0:3"), time_budget="1h")
    assert suites.run() == 0
    began, first, *_ = map(json.loads, suites.ledger.path.read_text().splitlines())
    left = [began, {**first, "session_s": 3600.0}]
    suites.ledger.path.write_text("".join(json.dumps(line) + "\n" for line in left))
    assert suites.run() == 0
    assert "goes on: 1 of 3 runs done" in suites.output
    assert "m: 1 of 3 runs" in suites.output
    assert len(suites.runs()) == 1


def test_a_run_that_takes_too_long_is_ended_in_order_and_fails(suites: Suites) -> None:
    suites.write(matrix("m", setting=does("valid", after="60"), run_timeout=0.4, seeds=[1]))
    assert suites.run() == 3
    (run,) = suites.runs()
    assert run.sentence == "It took more than 0.4 s."
    assert run.took_s < 30
    # It was asked, not killed: it wrote its results.
    assert (Path(str(run.run_folder)) / "results.json").is_file()
