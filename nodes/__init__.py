"""A KRaft quorum in Kafka's protocol and file formats; it does not know that it is tested."""
