"""Whatever brokers ask and whenever they die, the metadata stays sound; and who says so can be red.

Each invariant is shown a controller that breaks it: one with a planted bug, or with a part replaced
by a wrong one.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.controller.basis.leaderships import Leaderships, PartitionAt
from splitbrain.nodes.controller.brokers import broker_transitions, directories
from splitbrain.nodes.controller.partitions import isr_changes, leader_elections
from splitbrain.nodes.controller.partitions.partition_change import Election, partition_change
from splitbrain.nodes.metadata.content import image_records
from splitbrain.nodes.metadata.delta import image_of
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.partitions import partition_record
from tests.planted import FOLDER, with_bug
from tests.unit.nodes.controller.broker_courses import (
    NUMBERS_PER_ACTION,
    Action,
    Course,
    random_actions,
)
from tests.unit.nodes.controller.broker_invariants import INVARIANTS, Witness
from tests.unit.nodes.controller.led_cluster import Cluster

ACTIONS = st.lists(
    st.lists(
        st.integers(0, 1023), min_size=NUMBERS_PER_ACTION + 1, max_size=NUMBERS_PER_ACTION + 1
    ),
    max_size=60,
)
STEPS, COURSES = 120, 60


def played(actions: Iterable[Action]) -> tuple[Course, list[str]]:
    """The course up to the first step that breaks an invariant, and which ones it breaks."""
    course, witness = Course(Cluster()), Witness()
    for step in course.steps(actions):
        if problems := witness.problems(step):
            return course, problems
    return course, []


@given(ACTIONS)
def test_every_course_is_sound(actions: list[list[int]]) -> None:
    course, problems = played(actions)
    assert problems == []
    image = course.cluster.image
    assert image_of(image_records(image), image.provenance) == image


@pytest.mark.parametrize("first", range(0, COURSES, 20))
def test_long_courses_are_sound(first: int) -> None:
    for seed in range(first, first + 20):
        assert (seed, played(random_actions(seed, STEPS))[1]) == (seed, [])


def is_found(invariant: str) -> bool:
    """Whether some course is first seen to break the invariant."""
    return any(invariant in played(random_actions(seed, STEPS))[1] for seed in range(COURSES))


BUGS = {
    "broker-epoch-not-checked": "the_dead_ask_nothing",
    "unfenced-too-early": "who_is_unfenced_knows_itself",
    "stale-partition-epoch-accepted": "proposals_are_of_the_present",
    "ineligible-replica-accepted": "who_joins_is_alive_and_the_same",
    "fenced-broker-stays-leader": "leader_serves",
    "shut-down-too-early": "others_know_before_a_leader_goes",
    "producer-ids-given-twice": "ids_are_given_once",
    "live-broker-displaced": "one_process_per_broker",
    "broker-epoch-not-renewed": "each_incarnation_has_its_epoch",
}


#: Nothing unsound comes of these, only nothing at all: courses end, and what never happens is seen
#: in worlds (INV-62) and in runs (``checker.broker_sessions``).
OF_LIVENESS = {"silent-broker-stays", "sessions-lost-at-failover"}


def test_every_planted_bug_is_known_here() -> None:
    patches = {each.stem: each.read_text() for each in FOLDER.glob("*.patch")}
    assert {*BUGS, *OF_LIVENESS} == {
        name for name in patches if "+++ b/nodes/controller/" in patches[name]
    }


@pytest.mark.parametrize("invariant", [with_bug(bug, each) for bug, each in BUGS.items()])
def test_a_planted_bug_is_found(invariant: str) -> None:
    assert is_found(invariant)


def _keeping_the_leader(*args: Any) -> Any:
    record = partition_change(*args)
    return record if record is None else msgspec.structs.replace(record, leader=-2)


def _leading_from_anywhere(image: MetadataImage, at: PartitionAt, *args: Any) -> Any:
    record = partition_change(image, at, *args)
    if record is None or record.leader < 0:
        return record
    return msgspec.structs.replace(record, leader=at.state.replicas[-1])


def _beginning_anew(image: MetadataImage, at: PartitionAt, *args: Any) -> Any:
    if partition_change(image, at, *args) is None:
        return None
    known = partition_record(at.topic.topic_id, at.number, at.state)
    return msgspec.structs.replace(known, leader=at.state.isr[0], leader_epoch=0, partition_epoch=0)


def _no_leaderless(*_: Any) -> int:
    return 0


def _always(*_: Any) -> bool:
    return True


def _unclean(*_: Any) -> Election:
    return Election.UNCLEAN


def _registered(image: MetadataImage, broker_id: int) -> bool:
    return broker_id in image.brokers


def _fencing_twice(view: Any, broker: Any) -> list[Any]:
    # This does not call what was replaced for the test.
    written = _FENCED(view, broker)
    return [*written, written[-1]]


_FENCED = broker_transitions.fenced
MUTANTS: list[tuple[Any, str, Callable[..., Any], str]] = [
    (broker_transitions, "partition_change", _keeping_the_leader, "leader_is_in_sync"),
    (broker_transitions, "partition_change", _leading_from_anywhere, "leader_is_in_sync"),
    (isr_changes, "_is_sound", _always, "isr_is_sound"),
    (isr_changes, "_is_eligible", _always, "who_is_dead_is_in_sync_alone"),
    (broker_transitions, "is_active", _registered, "leader_serves"),
    (directories, "is_online", _always, "leader_has_its_directory"),
    (Leaderships, "leaderless_count", _no_leaderless, "who_can_lead_does"),
    (leader_elections, "partition_change", _beginning_anew, "epochs_tell_changes"),
    (broker_transitions, "automatic_election", _unclean, "nothing_is_lost_unasked"),
    (broker_transitions, "fenced", _fencing_twice, "time_changes_what_it_is_for"),
]


@pytest.mark.parametrize(("owner", "name", "wrong", "invariant"), MUTANTS)
def test_a_wrong_part_is_found(
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    wrong: Callable[..., Any],
    invariant: str,
) -> None:
    monkeypatch.setattr(owner, name, wrong)
    assert is_found(invariant)


def test_every_invariant_was_seen_red() -> None:
    assert set(INVARIANTS) == {*BUGS.values(), *(invariant for *_, invariant in MUTANTS)}
