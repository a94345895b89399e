"""Adapter of Apache ZooKeeper: one server a node, jars of Maven."""
