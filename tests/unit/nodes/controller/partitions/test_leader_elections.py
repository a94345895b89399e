"""Elections on request and from time to time."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from splitbrain.nodes.controller.basis.decisions import Decision
from splitbrain.nodes.controller.basis.settings import ControllerSettings
from splitbrain.nodes.controller.partitions import leader_elections
from splitbrain.nodes.controller.partitions.leader_elections import balance, elect_unclean
from splitbrain.nodes.controller.roles.active import ActiveController, Identity
from splitbrain.nodes.metadata.records import FenceBrokerRecord, PartitionChangeRecord
from splitbrain.nodes.quorum.identifiers import Epoch, Microseconds, NodeId, Offset
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.partitions import ElectLeadersRequest, PartitionsToElect
from tests.unit.nodes.controller.led_cluster import CLUSTER_ID, SECOND, Cluster, changed

PREFERRED, UNCLEAN = 0, 1


def cluster_of(*alive: int, **fields: Any) -> Cluster:
    """Brokers 1 and 2, of which these are alive, and one partition on both."""
    cluster = Cluster(1, 2)
    cluster.add_topic((1, 2), **fields)
    for broker_id in {1, 2} - set(alive):
        cluster.append([FenceBrokerRecord(broker_id, cluster.epoch(broker_id))])
    return cluster


def request(
    wanted: Sequence[tuple[str, tuple[int, ...]]] | None, election: int = PREFERRED
) -> ElectLeadersRequest:
    return ElectLeadersRequest(
        election_type=election,
        topic_partitions=(
            None
            if wanted is None
            else tuple(PartitionsToElect(topic=name, partitions=each) for name, each in wanted)
        ),
    )


def decided(cluster: Cluster, *args: Any) -> Any:
    return cluster.decide(ApiKey.ELECT_LEADERS, request(*args), 2)


def codes(decision: Any) -> list[tuple[str, list[tuple[int, int]]]]:
    return [
        (topic.topic, [(each.partition_id, each.error_code) for each in topic.partition_result])
        for topic in decision.answer.replica_election_results
    ]


@pytest.mark.parametrize(
    ("alive", "fields", "election", "code", "leader"),
    [
        ((1, 2), {}, PREFERRED, ApiError.ELECTION_NOT_NEEDED, None),
        ((1, 2), {"leader": 2}, PREFERRED, ApiError.NONE, 1),
        ((2,), {"leader": 2}, PREFERRED, ApiError.PREFERRED_LEADER_NOT_AVAILABLE, None),
        ((1, 2), {"leader": 2, "isr": (2,)}, PREFERRED,
         ApiError.PREFERRED_LEADER_NOT_AVAILABLE, None),
        # Another one than the preferred is better than none.
        ((2,), {"leader": -1}, PREFERRED, ApiError.NONE, 2),
        ((1, 2), {"leader": 2}, UNCLEAN, ApiError.ELECTION_NOT_NEEDED, None),
        ((2,), {"leader": -1, "isr": (1,)}, UNCLEAN, ApiError.NONE, 2),
        ((), {"leader": -1}, UNCLEAN, ApiError.ELIGIBLE_LEADERS_NOT_AVAILABLE, None),
    ],
)  # fmt: skip
def test_an_election_is_held_if_it_is_needed_and_can_be(
    alive: tuple[int, ...],
    fields: dict[str, Any],
    election: int,
    code: ApiError,
    leader: int | None,
) -> None:
    cluster = cluster_of(*alive, **fields)
    decision = decided(cluster, [("t", (0,))], election)
    assert decision.answer.error_code == ApiError.NONE
    assert codes(decision) == [("t", [(0, code)])]
    assert [each.leader for each in decision.records] == ([] if leader is None else [leader])


@pytest.mark.parametrize(
    ("wanted", "alive", "fields", "election", "words"),
    [
        (("u", 0), (1, 2), {}, PREFERRED, "No such topic as u"),
        (("t", 1), (1, 2), {}, PREFERRED, "No such partition as t-1"),
        (("t", 0), (1, 2), {}, UNCLEAN, "Leader election not needed for topic partition."),
        (("t", 0), (2,), {"leader": 2}, PREFERRED, "The preferred leader was not available."),
        (
            *(("t", 0), (), {"leader": -1}, UNCLEAN),
            "Eligible topic partition leaders are not available.",
        ),
        (("t", 0), (1, 2), {}, 2, "Unknown election type 2"),
    ],
)
def test_why_there_was_no_election_is_said_in_a_real_controllers_words(
    wanted: tuple[str, int],
    alive: tuple[int, ...],
    fields: dict[str, Any],
    election: int,
    words: str,
) -> None:
    name, number = wanted
    decision = decided(cluster_of(*alive, **fields), [(name, (number,))], election)
    (topic,) = decision.answer.replica_election_results
    assert [each.error_message for each in topic.partition_result] == [words]


def test_what_is_not_there_is_said() -> None:
    decision = decided(cluster_of(1, 2), [("u", (0,)), ("t", (1, 0))])
    assert codes(decision) == [
        ("u", [(0, ApiError.UNKNOWN_TOPIC_OR_PARTITION)]),
        ("t", [(1, ApiError.UNKNOWN_TOPIC_OR_PARTITION), (0, ApiError.ELECTION_NOT_NEEDED)]),
    ]


def test_of_all_partitions_those_without_need_are_not_told() -> None:
    cluster = cluster_of(1, 2)
    cluster.add_topic((1, 2), (2, 1), name="u", leader=1)
    decision = decided(cluster, None)
    assert codes(decision) == [("t", []), ("u", [(1, ApiError.NONE)])]
    assert decision.records[0].leader == 2


def test_of_no_partitions_nothing_is_said() -> None:
    decision = decided(cluster_of(1, 2), [], 9)
    assert codes(decision) == []
    assert decision.answer.error_code == ApiError.NONE


def test_an_unknown_election_fails_every_partition() -> None:
    decision = decided(cluster_of(1, 2), [("t", (0, 1))], 2)
    assert decision.answer.error_code == ApiError.INVALID_REQUEST
    wrong = ApiError.INVALID_REQUEST
    assert codes(decision) == [("t", [(0, wrong), (1, wrong)])]
    assert decided(cluster_of(1, 2), None, 2).answer.error_code == ApiError.INVALID_REQUEST


def test_a_request_holds_no_more_elections_than_a_batch_takes() -> None:
    cluster = Cluster(1, 2, records_per_batch_max=1)
    cluster.add_topic((1, 2), (1, 2), leader=2)
    decision = decided(cluster, None)
    assert decision.answer.error_code == ApiError.POLICY_VIOLATION
    assert not decision.records


def test_partitions_go_back_to_their_preferred_leaders_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leader_elections, "ELECTIONS_PER_EVENT_MAX", 2)
    cluster = Cluster(1, 2)
    cluster.add_topic((1, 2), (1, 2), (1, 2), leader=2)
    cluster.add_topic((1, 2), name="u")
    assert len(cluster.act(balance(cluster.view)).records) == 2
    assert len(cluster.act(balance(cluster.view)).records) == 1
    assert balance(cluster.view) is None
    assert [cluster.partition(each).leader for each in range(3)] == [1, 1, 1]


def test_balance_leaves_what_it_cannot_improve() -> None:
    assert balance(cluster_of(2, leader=2).view) is None
    assert balance(cluster_of(1, 2, leader=2, isr=(2,)).view) is None


def test_an_unclean_election_comes_by_itself_only_where_the_topic_allows_it() -> None:
    cluster = cluster_of(2, leader=-1, isr=(1,))
    assert elect_unclean(cluster.view) is None
    cluster.allow_unclean()
    decision = cluster.act(elect_unclean(cluster.view))
    assert list(decision.records) == [changed(0, leader=2, isr=(2,), leader_recovery_state=1)]
    assert elect_unclean(cluster.view) is None


@pytest.mark.parametrize(
    ("name", "interval", "leader"),
    [
        ("leader_imbalance_check_interval_s", 5, 1),
        ("unclean_leader_election_interval_ms", 5_000, 2),
    ],
)
def test_elections_that_nobody_asks_for_come_in_their_intervals(
    name: str, interval: int, leader: int
) -> None:
    never: dict[str, Any] = {
        "leader_imbalance_check_interval_s": 0,
        "unclean_leader_election_interval_ms": 0,
    }
    cluster = cluster_of(1, 2, leader=2) if leader == 1 else cluster_of(2, leader=-1, isr=(1,))
    cluster.allow_unclean()

    def led(**settings: Any) -> ActiveController:
        chosen = ControllerSettings(
            max_idle_interval_ms=0, broker_session_timeout_ms=3_600_000, **(never | settings)
        )
        identity = Identity(
            cluster_id=CLUSTER_ID, node_id=NodeId(3), settings=chosen, random=Random(0)
        )
        return ActiveController(identity, cluster.image, Epoch(2), Microseconds(0))

    def due(active: ActiveController, second: float) -> Decision | None:
        return active.due(Microseconds(int(second * SECOND)), Offset(cluster.next_offset))

    active = led(**{name: interval})
    assert active.deadline == 5 * SECOND
    assert due(active, 4.9) is None
    decision = due(active, 5)
    assert decision is not None
    (change,) = decision.records
    assert isinstance(change, PartitionChangeRecord)
    assert change.leader == leader
    active.appended(active.prepare(decision.records, Offset(cluster.next_offset)))
    assert due(active, 5) is None
    assert active.deadline == 10 * SECOND
    assert due(led(), 3_599) is None
