"""Kafka's controller as decisions: what a request, or the time, makes of the metadata. Pure."""
