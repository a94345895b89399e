"""The oracle's own model of Kafka's metadata, and what was committed of it."""
