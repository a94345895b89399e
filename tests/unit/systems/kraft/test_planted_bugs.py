"""The registry of planted bugs and the flags of the nodes are one list."""

import pytest

from splitbrain.nodes.server.start.planted import BUG_NAMES, METADATA_BUG_NAMES
from splitbrain.systems.kraft.planted_bug import PlantedBug
from splitbrain.systems.kraft.planted_bugs import PLANTED_BUGS, REGISTRY


def test_the_registry_names_every_flag_of_the_nodes_in_its_order() -> None:
    assert tuple(REGISTRY) == BUG_NAMES


def test_the_registry_says_which_bugs_need_kafkas_metadata() -> None:
    marked = {name for name, bug in REGISTRY.items() if bug.state_machine == "metadata"}
    assert marked == METADATA_BUG_NAMES


def test_the_sentences_are_those_of_the_registry() -> None:
    assert list(PLANTED_BUGS) == list(REGISTRY)
    assert all(PLANTED_BUGS[name] == bug.mechanism for name, bug in REGISTRY.items())


@pytest.mark.parametrize("bug", REGISTRY.values(), ids=lambda bug: bug.name)
def test_an_entry_is_one_sentence_with_a_source_and_a_fault(bug: PlantedBug) -> None:
    assert bug.mechanism.endswith(".")
    assert bug.mechanism.count(". ") == 0
    assert bug.source
    assert bug.exposed_by
    assert not bug.exposed_by.endswith(".")


def test_no_two_bugs_share_a_sentence() -> None:
    assert len(set(PLANTED_BUGS.values())) == len(PLANTED_BUGS)


def test_every_class_has_bugs() -> None:
    kinds = [bug.kind for bug in REGISTRY.values()]
    assert len(kinds) >= 26
    assert all(kinds.count(kind) >= 3 for kind in ("outcome", "invariant", "liveness"))
