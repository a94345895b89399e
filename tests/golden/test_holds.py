"""Two faults hold side by side, and of their acts is done, what the golden file says."""

from splitbrain.nemesis.holds import Holds
from splitbrain.nemesis.kinds import machine_kind_names
from tests.golden.goldens import Goldens
from tests.golden.holds_table import representatives, table


def test_what_two_faults_hold_is_what_the_golden_file_says(goldens: Goldens) -> None:
    goldens.compare("holds/pairs.txt", list(table(Holds)))


def test_every_kind_of_fault_has_one_that_does_the_same_acts_in_the_table() -> None:
    assert {name for names in representatives().values() for name in names} == set(
        machine_kind_names()
    )
