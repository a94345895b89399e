"""Partitions: where replicas go, who leads, who is in sync, and moves under way."""
