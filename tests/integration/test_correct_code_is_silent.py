"""Drawn worlds of the correct code raise no alarm, and are worth something.

``splitbrain sim --seeds A:B`` looks at as many more as there is time for.
"""

import pytest

from splitbrain.contracts.names import DEFAULT_SYSTEM
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.campaign.sweep.trial import draw, run
from splitbrain.harness.folder.simulation_outcome import SimulationOutcome
from splitbrain.harness.judge.simulated_outcomes import judged

pytestmark = pytest.mark.slow

#: Seeds of one test; ``test_planted_bugs_are_found`` runs some of the first 20 in the gate.
SLICES = [
    pytest.param(range(20), id="0-19", marks=pytest.mark.nightly),
    pytest.param(range(20, 28), id="20-27"),
    pytest.param(range(28, 45), id="28-44", marks=pytest.mark.nightly),
    pytest.param(range(45, 60), id="45-59", marks=pytest.mark.nightly),
]


def alarms(seeds: range, trial: SimOptions) -> tuple[list[str], list[SimulationOutcome]]:
    """Return the alarms of these worlds, and their outcomes."""
    found: list[str] = []
    outcomes: list[SimulationOutcome] = []
    for seed in seeds:
        seen = judged(run(draw(seed, trial)))
        outcomes.append(seen.outcome)
        if seen.failed_by:
            found.append(f"seed {seed}: {seen.failed_by} {seen.outcome.violation}")
    return found, outcomes


@pytest.mark.parametrize("seeds", SLICES)
def test_the_correct_code_raises_no_alarm_under_drawn_faults(seeds: range) -> None:
    found, outcomes = alarms(seeds, SimOptions(system=DEFAULT_SYSTEM))
    assert found == []

    def sum_of(figure: str) -> int:
        return sum(outcome.figures[figure] for outcome in outcomes)

    # The worlds are worth something: leaders change, logs are cut, work is done.
    assert sum_of("epochs") > 2 * len(outcomes)
    assert sum_of("truncations") > 0
    assert sum_of("commits") > 20 * len(outcomes)
    assert sum_of("acknowledged") > 20 * len(outcomes)


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 20), marks=pytest.mark.nightly)])
def test_beyond_the_promise_nothing_is_demanded_that_cannot_be_kept(seeds: range) -> None:
    found, _ = alarms(seeds, SimOptions(system=DEFAULT_SYSTEM, beyond_promise=True))
    assert found == []
