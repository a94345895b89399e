"""AllocateProducerIds: blocks, each given once."""

from typing import Any

import pytest

from splitbrain.nodes.metadata.records import ProducerIdsRecord
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.brokers import AllocateProducerIdsRequest
from tests.unit.nodes.controller.led_cluster import Cluster

LAST = (1 << 63) - 1


def allocated(cluster: Cluster, epoch: int | None = None) -> Any:
    return cluster.ask(
        ApiKey.ALLOCATE_PRODUCER_IDS,
        AllocateProducerIdsRequest(
            broker_id=1, broker_epoch=cluster.epoch(1) if epoch is None else epoch
        ),
    )


def test_blocks_of_a_thousand_follow_each_other() -> None:
    cluster = Cluster(1)
    found = [allocated(cluster) for _ in range(3)]
    assert [(each.error_code, each.producer_id_start, each.producer_id_len) for each in found] == [
        (0, 0, 1000),
        (0, 1000, 1000),
        (0, 2000, 1000),
    ]
    assert cluster.log[-1] == ProducerIdsRecord(
        broker_id=1, broker_epoch=cluster.epoch(1), next_producer_id=3000
    )


@pytest.mark.parametrize("epoch", [-1, 0, 99])
def test_a_stale_broker_gets_none(epoch: int) -> None:
    cluster = Cluster(1)
    found = allocated(cluster, epoch)
    assert (found.error_code, found.producer_id_len) == (ApiError.STALE_BROKER_EPOCH, 0)
    assert cluster.image.next_producer_id is None


def test_ids_come_to_an_end() -> None:
    cluster = Cluster(1)
    cluster.append([ProducerIdsRecord(broker_id=1, next_producer_id=LAST - 1000)])
    assert allocated(cluster).producer_id_start == LAST - 1000
    found = allocated(cluster)
    assert (found.error_code, found.producer_id_len) == (ApiError.UNKNOWN_SERVER_ERROR, 0)
    assert cluster.image.next_producer_id == LAST
