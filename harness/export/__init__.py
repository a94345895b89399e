"""Runs in the formats of other tools: Perfetto, OpenTelemetry."""
