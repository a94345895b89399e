"""Comparison of two clusters' answers, renamed. Pure."""

from collections.abc import Sequence


def assert_same(kafkas: Sequence[str], ours: Sequence[str]) -> None:
    """Fail with every pair of answers that differ, in order."""
    differing = [(kafka, own) for kafka, own in zip(kafkas, ours, strict=True) if kafka != own]
    report = "\n".join(f"--- Kafka's\n{kafka}\n--- ours\n{own}" for kafka, own in differing)
    assert not differing, f"{len(differing)} of {len(kafkas)} answers differ:\n{report}"
