"""Histories of partitioned logs such as Kafka's: what was sent, and what consumers read."""
