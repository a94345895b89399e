"""Adapter of Redis 7 with Sentinel: one server and one Sentinel a node, Debian's packages."""
