"""Counts of an image, for a node's metrics. Pure; one pass over brokers and topics."""

from splitbrain.nodes.metadata.image import MetadataImage


def image_figures(image: MetadataImage) -> dict[str, int]:
    """Brokers by whether they are fenced, topics and partitions, by ``layer.Figures``' names."""
    fenced_count = sum([broker.fenced for broker in image.brokers.values()])
    topics = image.topics.by_id.values()
    return {
        "active_broker_count": len(image.brokers) - fenced_count,
        "fenced_broker_count": fenced_count,
        "topic_count": len(topics),
        "partition_count": sum([len(topic.partitions) for topic in topics]),
    }
