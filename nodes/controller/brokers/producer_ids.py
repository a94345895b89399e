"""AllocateProducerIds: blocks of ids for producers, each given once.

Source: KIP-730.
"""

from typing import Final

from splitbrain.nodes.controller.basis.decisions import Decision, Refusal, View
from splitbrain.nodes.controller.basis.registrations import registered
from splitbrain.nodes.metadata.records import ProducerIdsRecord
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.brokers import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

BLOCK_LENGTH: Final = 1_000
_LAST_ID: Final = (1 << 63) - 1


def allocate_producer_ids(
    view: View, request: AllocateProducerIdsRequest, _version: int
) -> Decision:
    """The next block is the broker's.

    Raises Refusal: the broker is not registered with this epoch, or no block is left.
    """
    registered(view.image, request.broker_id, request.broker_epoch)
    first = view.image.next_producer_id or 0
    if first > _LAST_ID - BLOCK_LENGTH:
        raise Refusal(ApiError.UNKNOWN_SERVER_ERROR, "all producer ids are given away")
    record = ProducerIdsRecord(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        next_producer_id=first + BLOCK_LENGTH,
    )
    answer = AllocateProducerIdsResponse(
        throttle_time_ms=0,
        error_code=ApiError.NONE,
        producer_id_start=first,
        producer_id_len=BLOCK_LENGTH,
    )
    return Decision(answer, (record,))
