"""Whether a topic would rather lose records than have a partition without a leader.

Read of the topic, else of all brokers; not of one broker, as a controller is none of them.
Source: KIP-106; a real controller's resolution of topic configs.
"""

from typing import Final

from splitbrain.nodes.metadata.image import TOPIC_RESOURCE, MetadataImage

_UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"
#: The config of all brokers.
_ALL_BROKERS: Final = (4, "")


def is_unclean_election_allowed(image: MetadataImage, topic: str) -> bool:
    """Whether a partition of the topic may lose records rather than have no leader."""
    for resource in ((TOPIC_RESOURCE, topic), _ALL_BROKERS):
        value = image.configs.get(resource, {}).get(_UNCLEAN_ELECTION)
        if value is not None:
            return value.lower() == "true"
    return False
