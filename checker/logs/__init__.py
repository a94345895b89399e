"""Histories of partitioned logs: what was sent, and what consumers read."""
