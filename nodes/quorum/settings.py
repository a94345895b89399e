"""Timeouts and limits of the quorum, with the units in the names.

Defaults are ours (fast failover on one machine). ``nodes.server`` maps Kafka's names
(``controller.quorum.fetch.timeout.ms`` ...) onto these. Sources: Kafka's QuorumConfig, issue 3.
"""

import msgspec


class QuorumSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one replica; every replica of a quorum should have the same."""

    #: A follower that has had no good answer to a fetch for so long stands for election.
    fetch_timeout_ms: int = 500
    #: A voter without a leader, a prospective or a candidate waits this long, drawn anew each time.
    election_timeout_ms_min: int = 250
    election_timeout_ms_max: int = 500
    #: Longest random pause after a lost election; it starts at ``retry_back_off_ms`` and doubles.
    election_back_off_ms_max: int = 400
    #: The host gives up on a request after this long (RequestFailed) and closes its connection. It
    #: covers connecting; to a fetch the time that the leader may park it is added.
    request_timeout_ms: int = 300
    #: Pause before the same request goes to the same peer again after a failure or a refusal.
    retry_back_off_ms: int = 20
    #: How long a leader may park a fetch that has nothing to tell; below ``fetch_timeout_ms``.
    fetch_max_wait_ms: int = 100
    #: Upper bound of the records in one fetch answer; one whole batch always passes.
    fetch_max_bytes: int = 1_048_576
    #: Upper bound of the bytes of a snapshot in one answer (Kafka's
    #: ``controller.quorum.fetch.snapshot.max.bytes``).
    fetch_snapshot_max_bytes: int = 1_048_576
    #: How many of the newest snapshots stay; the log starts where the oldest of them ends. With two
    #: a replica that lags a little needs no snapshot, and one that is being fetched stays a while.
    snapshots_retained_count: int = 2
    #: A snapshot is written after so many bytes of new records (Kafka's
    #: ``metadata.log.max.record.bytes.between.snapshots``); read by ``nodes.server`` alone.
    snapshot_max_new_record_bytes: int = 20 * 1024 * 1024
    #: One is also written where the last one is so old and something is new; 0: never for that
    #: reason (Kafka's ``metadata.log.max.snapshot.interval.ms``). ``nodes.server`` alone.
    snapshot_max_interval_ms: int = 3_600_000
    #: Whether a follower stands soon, not only after the fetch timeout, where nobody listens at its
    #: leader's address any more. Kafka waits for the timeout.
    stands_when_leader_is_gone: bool = True

    def __post_init__(self) -> None:
        """Raise ValueError, with the names, for settings that cannot work together."""
        if min(
            self.fetch_timeout_ms, self.election_timeout_ms_min, self.request_timeout_ms,
            self.retry_back_off_ms, self.fetch_max_wait_ms, self.fetch_max_bytes,
            self.fetch_snapshot_max_bytes, self.snapshots_retained_count,
            self.snapshot_max_new_record_bytes,
        ) <= 0:  # fmt: skip
            raise ValueError("every timeout and limit of the quorum must be positive")
        if self.election_timeout_ms_max < self.election_timeout_ms_min:
            raise ValueError("election_timeout_ms_max must not be below election_timeout_ms_min")
        if self.fetch_max_wait_ms >= self.fetch_timeout_ms:
            raise ValueError("fetch_max_wait_ms must be below fetch_timeout_ms")

    @property
    def check_quorum_timeout_ms(self) -> int:
        """A leader without fetches from a majority for so long resigns (Kafka: 1.5 times)."""
        return self.fetch_timeout_ms * 3 // 2
