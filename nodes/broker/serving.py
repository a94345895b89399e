"""Answers that a broker gives by itself, from its image; while it is fenced it gives none.

A real broker opens its listener when it is first unfenced and answers from then on, fenced or not,
from whatever it knew last. Ours refuses while it has to believe itself fenced
(``Lifecycle.is_fenced``), in the way that makes clients ask again, and another broker:

- Metadata is answered without brokers, each topic with LEADER_NOT_AVAILABLE. Clients take an answer
  without brokers for one of a broker that is about to start, keep what they knew, and ask again;
  the code is one that they retry, which BROKER_NOT_AVAILABLE is not.
- DescribeCluster and DescribeTopicPartitions have no error that Kafka's own admin client would
  retry: the connection is closed without an answer, as if nobody listened.

A forwarded request (``nodes.broker.forwarding``) is let through: the controller decides, and
a real broker would forward it too.
"""

from typing import Any, Final

import msgspec

from splitbrain.nodes.broker.asking import Asking
from splitbrain.nodes.broker.cluster_answers import answer_cluster
from splitbrain.nodes.broker.metadata_answers import answer_metadata, refused_metadata
from splitbrain.nodes.broker.partition_pages import answer_partitions
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.errors import ApiError

#: APIs that ``answer`` knows.
ANSWERED: Final = frozenset(
    {ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER, ApiKey.DESCRIBE_TOPIC_PARTITIONS}
)


def answer(
    asking: Asking, api_key: ApiKey, request: Any, version: int, *, is_fenced: bool
) -> msgspec.Struct | None:
    """Return the response's message; None where the client's connection is to be closed instead.

    Raises:
        ValueError: the API is not one of ``ANSWERED``.
    """
    match api_key:
        case ApiKey.METADATA if is_fenced:
            return refused_metadata(request, ApiError.LEADER_NOT_AVAILABLE)
        case ApiKey.METADATA:
            return answer_metadata(asking, request, version)
        case ApiKey.DESCRIBE_CLUSTER:
            return None if is_fenced else answer_cluster(asking, request, version)
        case ApiKey.DESCRIBE_TOPIC_PARTITIONS:
            return None if is_fenced else answer_partitions(asking, request)
        case _:
            raise ValueError(f"a broker does not answer {api_key.name} by itself")
