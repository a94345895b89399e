"""Adapter of PostgreSQL: one server, or a primary with standbys that stream from it."""
