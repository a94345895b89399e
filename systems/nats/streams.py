"""Streams of the workloads: their names, their subjects, and how they are made.

Registers are the keys of a bucket, which is a stream that keeps the last message of a subject. A
set is a subject. Source: NATS' ADR-8, for the bucket.
"""

from collections.abc import Mapping
from typing import Any, Final

_BUCKET: Final = "registers"
_SETS: Final = "sets"


def stream_of(workload: str | None) -> str:
    """Return the name of a workload's stream."""
    return _SETS if workload == "set" else f"KV_{_BUCKET}"


def subject_of(workload: str | None, key: str) -> str:
    """Return the subject of a set or a register."""
    return f"{_SETS}.{key}" if workload == "set" else f"$KV.{_BUCKET}.{key}"


def fence_of(key: str) -> str:
    """Return the subject of messages that are stored only if a register has not changed."""
    return f"$KV.{_BUCKET}.fence.{key}"


def configuration(workload: str | None, replicas: int) -> Mapping[str, Any]:
    """Return the configuration of a workload's stream."""
    common = {
        "name": stream_of(workload),
        "subjects": [subject_of(workload, ">")],
        "retention": "limits",
        "storage": "file",
        "num_replicas": replicas,
        "allow_direct": True,
    }
    if workload == "set":
        return {**common, "discard": "old"}
    bucket = {"max_msgs_per_subject": 1, "allow_rollup_hdrs": True, "deny_delete": True}
    return {**common, **bucket, "discard": "new"}
