"""Streams of the workloads: their names, their subjects, and how they are made.

Registers are the keys of a bucket, which is a stream that keeps the last message of a subject. A
set is the subjects below one, an element each; a queue is a subject of a stream that drops what was
acknowledged. Source: NATS' ADR-8, for the bucket.
"""

from collections.abc import Mapping
from typing import Any, Final

_BUCKET: Final = "registers"
#: By workload; the others have registers.
_PLAIN: Final[Mapping[str | None, str]] = {"set": "sets", "queue": "queues"}
#: An element that was handed out and not acknowledged for so long is handed out again.
ACK_WAIT_S: Final = 5
_NS: Final = 1_000_000_000


def stream_of(workload: str | None) -> str:
    """Return the name of a workload's stream."""
    return _PLAIN.get(workload, f"KV_{_BUCKET}")


def keeps_all(workload: str | None) -> bool:
    """Return whether no message of the workload's stream replaces another."""
    return workload in _PLAIN


def subject_of(workload: str | None, key: str) -> str:
    """Return the subject of a register, a set or a queue."""
    return f"{_PLAIN.get(workload, f'$KV.{_BUCKET}')}.{key}"


def fence_of(key: str) -> str:
    """Return the subject of messages that are stored only if a register has not changed."""
    return f"$KV.{_BUCKET}.fence.{key}"


def configuration(workload: str | None, replicas: int) -> Mapping[str, Any]:
    """Return the configuration of a workload's stream."""
    common = {
        "name": stream_of(workload),
        "subjects": [subject_of(workload, ">")],
        "retention": "workqueue" if workload == "queue" else "limits",
        "storage": "file",
        "num_replicas": replicas,
        "allow_direct": True,
    }
    if workload in _PLAIN:
        return {**common, "discard": "old"}
    bucket = {"max_msgs_per_subject": 1, "allow_rollup_hdrs": True, "deny_delete": True}
    return {**common, **bucket, "discard": "new"}


def consumer(key: str) -> Mapping[str, Any]:
    """Return the configuration of the consumer of a queue, which all its clients share."""
    return {
        "durable_name": key,
        "deliver_policy": "all",
        "ack_policy": "explicit",
        "ack_wait": ACK_WAIT_S * _NS,
        "max_deliver": -1,
        "filter_subject": subject_of("queue", key),
    }
