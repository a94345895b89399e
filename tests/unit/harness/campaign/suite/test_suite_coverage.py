"""Coverage of faults is kept in the ledger and added up; the untried is seen first."""

import json

from splitbrain.harness.campaign.suite.tally import nights_of, sum_all_coverage
from splitbrain.harness.folder.coverage_cells import CoverageCell
from tests.unit.harness.campaign.suite.fake_nights import Suites, does, matrix, program

KILL = CoverageCell("kill", "leader", "settled", "w", 2, 1)
TOLD = matrix("told", setting=does("valid", covers="kill"), seeds="0:2")
UNTOLD = matrix("untold", setting=does("valid"), seeds=[5])
PLANTED = matrix("bug", setting=does("invalid", covers="pause"), expect="invalid", seeds=[9])
PROGRAM = program("program", "true")


def test_the_ledger_keeps_and_adds_up_what_faults_have_met(suites: Suites) -> None:
    suites.write(TOLD, UNTOLD, PLANTED, PROGRAM)
    suites.run()
    kept = {(run.cell, run.coverage) for run in suites.runs()}
    pause = CoverageCell("pause", "leader", "settled", "w", 2, 1)
    assert kept == {("told", (KILL,)), ("untold", None), ("bug", (pause,)), ("program", None)}
    total = sum_all_coverage(nights_of(suites.lines()))
    # Neither the planted bug's run, which tries other code, nor a program is counted.
    assert (total.known, total.unknown) == (2, 1)
    assert total.cells == (CoverageCell("kill", "leader", "settled", "w", 4, 2),)


def test_the_report_shows_first_what_was_never_tried(suites: Suites) -> None:
    suites.write(TOLD)
    suites.run()
    assert "Fault coverage of all nights" not in suites.output
    for with_file in (True, False):
        suites.report(with_file=with_file)
        told = suites.output.split("Fault coverage of all nights")[1].splitlines()
        assert told[1] == "  Counted over 2 runs that should be valid."
        assert told[2].startswith("  Never tried at all: ")
        assert "pause, " in told[2]
        assert "kill" not in told[2].replace("cut-then-kill", "")
        assert told[3].startswith("  Never tried kill on a leader in an election")
        rows = [line.split() for line in told]
        assert ["kill", "leader", "0", "0", "4", "(2", "took", "effect)", "0"] in rows
        assert ["kill", "follower", "0", "0", "0", "0"] in rows
        assert ["fault", "w"] in rows
    summary = next(suites.folder.glob("suites/unit/*/summary.md")).read_text()
    assert "## Fault coverage of all nights" in summary
    assert "| kill | leader | 0 | 0 | 4 (2 took effect) | 0 |" in summary


def test_a_ledger_of_an_earlier_version_is_read_and_tells_nothing_of_coverage(
    suites: Suites,
) -> None:
    suites.write(TOLD)
    suites.run()
    lines = [json.loads(line) for line in suites.ledger.path.read_text().splitlines()]
    for line in lines:
        line.pop("coverage", None)
    suites.ledger.path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert suites.report() == 0
    assert "Counted over 0 runs that should be valid. 2 more runs told nothing." in suites.output
