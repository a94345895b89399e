"""Kafka's controller on a voter: its queue, its registration, and how its answers go back."""
