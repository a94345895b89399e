"""Questions to one member: whom it follows and how far it is, the hash of its keys, its figures.

Blocking. Must never be called from an event loop's thread.
"""

from typing import Any, Final

import msgspec

from splitbrain.contracts.member_digest import MemberDigest
from splitbrain.contracts.runtime import Address
from splitbrain.systems.etcd.client import COMPARED
from splitbrain.systems.etcd.gateway import below, key, value
from splitbrain.systems.questions import ask_by_http

#: Of its own limit of 128 operations a transaction.
_PUTS_IN_ONE: Final = 100
_METRICS: Final = frozenset(
    {
        "etcd_server_has_leader",
        "etcd_server_leader_changes_seen_total",
        "etcd_server_proposals_applied_total",
        "etcd_server_proposals_committed_total",
        "etcd_server_proposals_failed_total",
        "etcd_server_proposals_pending",
        "etcd_server_slow_apply_total",
        "etcd_server_slow_read_indexes_total",
        "etcd_disk_wal_fsync_duration_seconds_sum",
        "etcd_disk_backend_commit_duration_seconds_sum",
        "etcd_mvcc_db_total_size_in_bytes",
        "etcd_debugging_mvcc_keys_total",
    }
)


class MemberView(msgspec.Struct, frozen=True):
    """One member, as it sees itself; numbers of 0 are left out of answers."""

    member: str
    #: The leader that it follows, itself perhaps; "0": none.
    leader: str
    term: int
    revision: int
    applied: int

    @property
    def leads(self) -> bool:
        """Whether it believes that it leads."""
        return self.member == self.leader

    @property
    def epoch(self) -> int:
        """Its term."""
        return self.term


def ask_view(there: Address, timeout_s: float) -> MemberView | None:
    """Return the view of a member; None where it does not answer."""
    told = _ask(there, "/v3/maintenance/status", {}, timeout_s)
    if told is None:
        return None
    header = told["header"]
    return MemberView(
        member=header["member_id"],
        leader=told.get("leader", "0"),
        term=int(told.get("raftTerm", 0)),
        revision=int(header.get("revision", 0)),
        applied=int(told.get("raftAppliedIndex", 0)),
    )


def count_compared(there: Address, timeout_s: float) -> int | None:
    """Return the number of keys that comparisons are made of."""
    request = {**below(COMPARED), "count_only": True}
    told = _ask(there, "/v3/kv/range", request, timeout_s)
    return None if told is None else int(told.get("count", 0))


def put_compared(there: Address, first: int, end: int, timeout_s: float) -> bool:
    """Put such keys, of the numbers from ``first`` to below ``end``; returns whether all are."""
    for start in range(first, end, _PUTS_IN_ONE):
        numbers = range(start, min(start + _PUTS_IN_ONE, end))
        puts = [
            {"request_put": {"key": key(f"{COMPARED}/{number:06}"), "value": value(number)}}
            for number in numbers
        ]
        if _ask(there, "/v3/kv/txn", {"success": puts}, timeout_s) is None:
            return False
    return True


def ask_digest(peer: Address, timeout_s: float, revision: int = 0) -> MemberDigest | None:
    """Return the hash of a member's keys as of a revision, by default of its newest.

    Asked at the port for members: the gateway has no such call before 3.6. A revision that the
    member has not reached, or has compacted, has none.
    """
    body = msgspec.json.encode({"revision": revision})
    answer = ask_by_http(peer, "GET", "/members/hashkv", timeout_s, body)
    if answer is None:
        return None
    told = msgspec.json.decode(answer)
    compacted = told["compact_revision"]
    # The header has the newest revision, whichever one is asked about.
    return MemberDigest(
        position=revision or told["header"]["revision"],
        digest=str(told["hash"]),
        scope="" if compacted < 0 else f"compact revision {compacted}",
    )


def ask_figures(there: Address, timeout_s: float) -> dict[str, float] | None:
    """Return some of a member's metrics; None where it does not answer."""
    answer = ask_by_http(there, "GET", "/metrics", timeout_s)
    return None if answer is None else figures_of(answer.decode(errors="replace"))


def figures_of(text: str) -> dict[str, float]:
    """Return the metrics that are kept, of a text in Prometheus' format."""
    rows = (line.partition(" ") for line in text.splitlines())
    return {
        name.removeprefix("etcd_"): float(number) for name, _, number in rows if name in _METRICS
    }


def _ask(there: Address, path: str, request: dict[str, Any], timeout_s: float) -> Any:
    answer = ask_by_http(there, "POST", path, timeout_s, msgspec.json.encode(request))
    return None if answer is None else msgspec.json.decode(answer)
