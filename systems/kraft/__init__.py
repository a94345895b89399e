"""Adapter of the KRaft quorum in ``nodes``: deployment, clients, error table, dump of its log."""
