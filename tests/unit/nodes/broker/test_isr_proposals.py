"""A leader's proposals are what the controller takes: whoever may be in sync gets there."""

from typing import Any

from splitbrain.nodes.broker.isr_proposals import propose_isrs
from splitbrain.nodes.metadata.image import TopicImage
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.calls import decode_call, encode_call
from splitbrain.nodes.wire.errors import ApiError
from tests.unit.nodes.controller.led_cluster import TOPIC_ID, Cluster


def proposed(cluster: Cluster, broker_id: int) -> Any:
    return propose_isrs(cluster.image, broker_id, cluster.epoch(broker_id), {})


def taken(cluster: Cluster, broker_id: int) -> list[int]:
    """Codes of the partitions, once the proposal was carried and decided."""
    call = encode_call(proposed(cluster, broker_id), 3, 1, None)
    answer = cluster.ask(ApiKey.ALTER_PARTITION, decode_call(call[4:]).message, 3)
    assert answer.error_code == ApiError.NONE
    return [each.error_code for topic in answer.topics for each in topic.partitions]


def test_nothing_is_proposed_where_everybody_is_in_sync() -> None:
    cluster = Cluster(1, 2)
    cluster.add_topic((1, 2), (2, 1))
    assert proposed(cluster, 1) is None
    assert proposed(cluster, 9) is None


def test_replicas_that_live_join_and_the_controller_agrees() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.add_topic((1, 2, 3), (1, 3, 2), (2, 1, 3), isr=(1,))
    cluster.change(2, isr=(2,), leader=2)
    request = proposed(cluster, 1)
    (topic,) = request.topics
    assert topic.topic_id == TOPIC_ID
    assert [each.partition_index for each in topic.partitions] == [0, 1]
    first = topic.partitions[1]
    assert [each.broker_id for each in first.new_isr_with_epochs] == [1, 3, 2]
    assert [each.broker_epoch for each in first.new_isr_with_epochs] == [
        cluster.epoch(each) for each in (1, 3, 2)
    ]
    assert taken(cluster, 1) == [ApiError.NONE, ApiError.NONE]
    assert set(cluster.partition(0).isr) == {1, 2, 3}
    assert proposed(cluster, 1) is None
    # The other's partition is the other's to propose.
    assert cluster.partition(2).isr == (2,)
    assert taken(cluster, 2) == [ApiError.NONE]


def test_the_fenced_and_those_about_to_go_do_not_join() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.add_topic((1, 2, 3), (2, 1), isr=(1,))
    cluster.change(1, isr=(2,), leader=2)
    assert cluster.register(4).error_code == ApiError.NONE
    cluster.add_topic((1, 4), isr=(1,), name="u")
    assert not cluster.beat(2, want_shut_down=True).should_shut_down
    request = proposed(cluster, 1)
    (topic,) = request.topics
    (only,) = topic.partitions
    assert (only.partition_index, only.leader_epoch) == (0, cluster.partition(0).leader_epoch)
    assert [each.broker_id for each in only.new_isr_with_epochs] == [1, 3]
    assert taken(cluster, 1) == [ApiError.NONE]


def test_a_proposal_from_an_older_image_is_refused() -> None:
    cluster = Cluster(1, 2)
    cluster.add_topic((1, 2), isr=(1,))
    before = cluster.image
    assert taken(cluster, 1) == [ApiError.NONE]
    late = propose_isrs(before, 1, cluster.epoch(1), {})
    assert late is not None
    answer = cluster.ask(ApiKey.ALTER_PARTITION, late, 3)
    assert answer.topics[0].partitions[0].error_code == ApiError.INVALID_UPDATE_VERSION


def test_a_leader_after_an_unclean_election_says_that_it_has_recovered() -> None:
    cluster = Cluster(1, 2)
    cluster.add_topic((1, 2), isr=(1,), leader_recovery_state=1)
    assert taken(cluster, 1) == [ApiError.NONE]
    assert cluster.partition().leader_recovery_state == 0
    alone = Cluster(1)
    alone.add_topic((1, 2), isr=(1,), leader_recovery_state=1)
    assert taken(alone, 1) == [ApiError.NONE]
    assert (alone.partition().leader_recovery_state, alone.partition().isr) == (0, (1,))


def test_topics_of_which_nothing_is_proposed_are_looked_at_once_they_change() -> None:
    cluster = Cluster(1, 2)
    cluster.add_topic((1, 2))
    whole: dict[str, TopicImage] = {}
    assert propose_isrs(cluster.image, 1, cluster.epoch(1), whole) is None
    assert whole == {TOPIC_ID: cluster.image.topics.by_id[TOPIC_ID]}
    cluster.change(isr=(1,))
    for _ in range(2):
        assert propose_isrs(cluster.image, 1, cluster.epoch(1), whole) is not None
        assert whole == {}
