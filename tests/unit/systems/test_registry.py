"""Systems are found by name, and are what the harness expects."""

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.system import System
from splitbrain.systems.registry import names, system


def test_every_name_makes_a_system_of_that_name() -> None:
    for name in names():
        made: System = system(name)
        assert made.name == name


def test_each_run_gets_its_own_adapter() -> None:
    assert system("kraft") is not system("kraft")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="kraft"):
        system("oracle")


def test_kraft_knows_the_planted_bugs_of_its_nodes() -> None:
    kraft = system("kraft")
    assert kraft.declares_state_events
    assert {"ack-before-commit", "stale-leader-reads", "vote-not-persisted"} <= set(
        kraft.planted_bugs
    )
