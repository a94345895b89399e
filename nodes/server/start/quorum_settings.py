"""Turns settings given as text, by our names or by Kafka's, into the quorum's settings.

Ours are the field names of ``QuorumSettings``. Source of the others: Kafka's QuorumConfig. Pure.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from splitbrain.nodes.quorum.settings import QuorumSettings

_OURS: Final = frozenset(QuorumSettings.__struct_fields__)
#: Settings that are on or off.
_SWITCHES: Final = frozenset({"stands_when_leader_is_gone"})
#: Kafka's name to ours; the election timeout is the lower end of a range twice as high.
_KAFKA: Final = {
    "controller.quorum.fetch.timeout.ms": "fetch_timeout_ms",
    "controller.quorum.election.timeout.ms": "election_timeout_ms_min",
    "controller.quorum.election.backoff.max.ms": "election_back_off_ms_max",
    "controller.quorum.request.timeout.ms": "request_timeout_ms",
    "controller.quorum.retry.backoff.ms": "retry_back_off_ms",
    "controller.quorum.fetch.snapshot.max.bytes": "fetch_snapshot_max_bytes",
    "metadata.log.max.record.bytes.between.snapshots": "snapshot_max_new_record_bytes",
    "metadata.log.max.snapshot.interval.ms": "snapshot_max_interval_ms",
}


def quorum_settings(settings: Mapping[str, str]) -> QuorumSettings:
    """Defaults, overridden by what is given.

    A fetch that has nothing to tell is parked for at most half the fetch timeout, unless
    ``fetch_max_wait_ms`` itself is given.

    Raises:
        ValueError: names a setting that is unknown, no whole number, or contradicts another.
    """
    chosen: dict[str, Any] = {}
    for name, text in settings.items():
        field = _KAFKA.get(name, name)
        if field not in _OURS:
            known = ", ".join(sorted(_OURS | set(_KAFKA)))
            raise ValueError(f"unknown setting {name!r}; known are {known}")
        if field in chosen:
            raise ValueError(f"setting {name!r} is given twice, by Kafka's name and by ours")
        chosen[field] = _value(name, field, text)
    if "election_timeout_ms_min" in chosen and "election_timeout_ms_max" not in chosen:
        chosen["election_timeout_ms_max"] = 2 * chosen["election_timeout_ms_min"]
    merged = msgspec.structs.asdict(QuorumSettings()) | chosen
    if "fetch_max_wait_ms" not in chosen:
        longest_ms = merged["fetch_timeout_ms"] // 2
        merged["fetch_max_wait_ms"] = max(1, min(merged["fetch_max_wait_ms"], longest_ms))
    return QuorumSettings(**merged)


def _value(name: str, field: str, text: str) -> int | bool:
    """Return the setting's value; raises ValueError."""
    if field in _SWITCHES:
        if text not in ("true", "false"):
            raise ValueError(f"setting {name!r} is {text!r}, not true or false")
        return text == "true"
    if not text.strip().isdecimal():
        raise ValueError(f"setting {name!r} is {text!r}, not a whole number")
    return int(text)
