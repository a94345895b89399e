"""Kafka's bytes: record batches, frames, requests and responses of the quorum. Pure."""
