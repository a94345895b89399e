"""Sockets of a node: Kafka frames between nodes, a private protocol for clients."""
