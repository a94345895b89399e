"""Inputs of an answer from the image, besides the request and its version."""

from typing import Final

import msgspec

from splitbrain.nodes.controller.basis.decisions import Refusal
from splitbrain.nodes.controller.basis.topic_names import check_topic_name
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.quorum.random_source import RandomSource
from splitbrain.nodes.wire.errors import ApiError

#: Topics of the brokers' own, by name.
_INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
#: Bits of what may be done where everybody may do everything, by Kafka's codes of operations: read,
#: write, create, delete, alter, describe, describe and alter configs.
ALL_TOPIC_OPERATIONS: Final = sum(1 << code for code in (3, 4, 5, 6, 7, 8, 10, 11))


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request came in, and what is known there."""

    image: MetadataImage
    cluster_id: str
    #: Name of the listener that the client is connected to.
    listener: str
    #: For the broker that is named as controller.
    random: RandomSource


def is_internal(name: str) -> bool:
    """Whether the topic is the brokers' own."""
    return name in _INTERNAL


def unknown_topic_code(name: str) -> ApiError:
    """Why a name has no topic: there is none, or there can be none."""
    try:
        check_topic_name(name)
    except Refusal as refusal:
        return refusal.code
    return ApiError.UNKNOWN_TOPIC_OR_PARTITION
