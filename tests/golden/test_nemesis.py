"""The nemesis does with every kind of fault, in every ending, what the golden files say."""

import pytest

from splitbrain.nemesis.kinds import machine_kind_names
from tests.golden.goldens import Goldens
from tests.golden.nemesis_engine import carried_out
from tests.golden.nemesis_pairs import pairs_of
from tests.golden.nemesis_rendering import rendered
from tests.golden.nemesis_several import several
from tests.golden.nemesis_stories import stories_of

#: File of the schedules of several faults.
_SEVERAL = "several"


@pytest.mark.parametrize("kind", machine_kind_names())
def test_a_kind_of_fault_does_what_its_golden_file_says(kind: str, goldens: Goldens) -> None:
    stories = [*stories_of(kind), *pairs_of(kind)]
    lines = [line for story in stories for line in rendered(carried_out(story))]
    goldens.compare(f"nemesis/{kind}.txt", lines)


def test_whole_schedules_do_what_their_golden_file_says(goldens: Goldens) -> None:
    lines = [line for story in several() for line in rendered(carried_out(story))]
    goldens.compare(f"nemesis/{_SEVERAL}.txt", lines)


def test_every_golden_file_of_the_nemesis_is_that_of_a_kind(goldens: Goldens) -> None:
    assert goldens.names("nemesis") == {*machine_kind_names(), _SEVERAL}
