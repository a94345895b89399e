"""The link between nodes does what its golden files say."""

import pytest

from tests.golden.goldens import Goldens
from tests.golden.link_engine import on_the_machine
from tests.golden.link_stories import LINK_STORIES


@pytest.mark.parametrize("family", sorted(LINK_STORIES))
def test_the_link_of_real_nodes_does_what_its_golden_file_says(
    family: str, goldens: Goldens
) -> None:
    lines = [line for story in LINK_STORIES[family] for line in on_the_machine(story)]
    goldens.compare(f"link/{family}.txt", lines)


def test_every_golden_file_of_the_link_is_that_of_a_family(goldens: Goldens) -> None:
    assert goldens.names("link") == set(LINK_STORIES)
