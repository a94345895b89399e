"""The quorum's client does what its golden files say, on a machine and in a world."""

import pytest

from tests.golden.client_engine import in_a_world, on_the_machine
from tests.golden.client_stories import ALIKE, IN_A_WORLD, ON_THE_MACHINE
from tests.golden.goldens import Goldens


@pytest.mark.parametrize("family", sorted(ALIKE | ON_THE_MACHINE))
def test_the_client_of_real_runs_does_what_its_golden_file_says(
    family: str, goldens: Goldens
) -> None:
    stories = (ALIKE | ON_THE_MACHINE)[family]
    lines = [line for story in stories for line in on_the_machine(story)]
    goldens.compare(f"client/{family}.txt", lines)


@pytest.mark.parametrize("family", sorted(ALIKE | IN_A_WORLD))
def test_the_client_of_simulated_worlds_does_the_same(family: str, goldens: Goldens) -> None:
    stories = (ALIKE | IN_A_WORLD)[family]
    lines = [line for story in stories for line in in_a_world(story)]
    goldens.compare(f"client/{family}.txt", lines)


def test_every_golden_file_of_the_client_is_that_of_a_family(goldens: Goldens) -> None:
    assert goldens.names("client") == set(ALIKE | ON_THE_MACHINE | IN_A_WORLD)
