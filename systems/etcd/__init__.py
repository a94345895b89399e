"""Adapter of etcd: one server a node, built from its Go module."""
