"""Rules of a scenario's sequel: the fault before it, and where it waits."""

from typing import Any

import pytest

from splitbrain.contracts.fault import Awaited, Fault
from splitbrain.contracts.scenario import Scenario
from splitbrain.harness.folder.scenario_rules import RuleError, check_values
from splitbrain.nemesis.fault_options import AFTER, OTHER, PLACE, SAME


def scenario(**options: Any) -> Scenario:
    first = Fault(0, "kill", "leader", 1_000, 1_000, 1)
    sequel = Fault(1, "kill", "there", 0, 1_000, 1, options, Awaited("leads"))
    return Scenario(system="fake", seed=1, faults=(first, sequel))


@pytest.mark.parametrize("place", [SAME, OTHER])
def test_a_sequel_at_the_same_nodes_or_at_others_is_taken(place: str) -> None:
    check_values(scenario(**{AFTER: 0, PLACE: place}))


@pytest.mark.parametrize("options", [{AFTER: "kill"}, {AFTER: 0, PLACE: "nearby"}])
def test_a_sequel_that_cannot_be_meant_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(RuleError, match=r"faults\[1\]\.options\.after"):
        check_values(scenario(**options))
