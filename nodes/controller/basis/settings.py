"""Settings of a controller, with the units in the names; Kafka's names beside them."""

import msgspec

from splitbrain.nodes.quorum.identifiers import Microseconds


class ControllerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Every controller of a cluster should have the same; the defaults are Kafka's."""

    #: A broker that was not heard of for so long is fenced (``broker.session.timeout.ms``).
    broker_session_timeout_ms: int = 9_000
    #: Partitions of a topic created without a number (``num.partitions``).
    num_partitions: int = 1
    #: Replicas of a topic created without a number (``default.replication.factor``).
    default_replication_factor: int = 1
    #: ``min.insync.replicas`` where neither topic nor cluster says another.
    min_insync_replicas: int = 1
    #: How often leaders that are not the preferred ones are looked for
    #: (``leader.imbalance.check.interval.seconds``); 0: never (``auto.leader.rebalance.enable``).
    leader_imbalance_check_interval_s: int = 300
    #: How often leaders from outside the ISR are looked for where the topic allows them
    #: (``unclean.leader.election.interval.ms``); 0: never.
    unclean_leader_election_interval_ms: int = 300_000
    #: How often a leader writes that it is there (``metadata.max.idle.interval.ms``); 0: never.
    max_idle_interval_ms: int = 500
    #: Most records of one decision, as a real controller allows.
    records_per_batch_max: int = 10_000
    #: Records of a new leader's own transaction that go into one batch: it may be lost between two
    #: batches, which a small number lets happen.
    activation_records_per_batch_max: int = 10_000

    @property
    def broker_session_timeout(self) -> Microseconds:
        """The session as the clock counts."""
        return Microseconds(self.broker_session_timeout_ms * 1_000)
