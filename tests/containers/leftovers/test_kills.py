"""Whatever the harness was doing when it was killed, ``clean`` leaves the machine as it was.

The moments are scripted here; ``bench.harness_kills`` draws them.
"""

from pathlib import Path

import pytest
from docker import DockerClient

from bench.kill_moments import Moment
from bench.killed_runs import Campaign, Kill

pytestmark = [pytest.mark.containers, pytest.mark.alone, pytest.mark.timeout(300)]

DEPLOYING = Kill(Moment("deploying", 0.6), "with its watchdog", 1, 2.0, "none")
# Of any node: on a busy machine nobody may lead when a fault's moment comes.
IN_A_PARTITION = Kill(Moment("in a fault", 0.1), "alone", 2, 16.0, "partition:random:1")
JUDGING = Kill(Moment("judging", 0.2), "with its group", 3, 2.0, "none")


@pytest.mark.parametrize(
    "kill", [DEPLOYING, IN_A_PARTITION, JUDGING], ids=["deploying", "in-a-partition", "judging"]
)
def test_a_kill_and_a_clean_leave_nothing(kill: Kill, tmp_path: Path, engine: DockerClient) -> None:
    campaign = Campaign(tmp_path, engine)
    with campaign.foreign:
        outcome = campaign.round(1, kill)
    assert outcome.ended is None
    assert (outcome.left_behind, outcome.disturbed, outcome.problems) == ([], [], [])
    if kill is IN_A_PARTITION:
        # Healed and stopped before anybody cleaned; how soon is the campaign's to measure.
        assert outcome.watchdog_s is not None
        assert outcome.watchdog_s < 60
        assert outcome.check == 2
