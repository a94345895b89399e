"""Adapter of RabbitMQ: one broker a node, Debian's packages."""
