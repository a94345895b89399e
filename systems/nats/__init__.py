"""Adapter of NATS: one server with JetStream a node, built from its Go module."""
