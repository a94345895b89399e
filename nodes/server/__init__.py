"""Hosts the quorum: event loop, disk thread, clients, configuration. The one place with a clock."""
