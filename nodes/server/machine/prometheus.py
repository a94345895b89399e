"""A node's figures as Prometheus reads them, by the names of Kafka's own beans.

Names are those that the usual rules of the JMX exporter make of a real controller's metrics, so
that dashboards made for Kafka work; figures that KIP-595 and KIP-631 name and no bean of 4.3 has
are named alike. Durations are in milliseconds. Source: KIP-595, KIP-630, KIP-631.
"""

from collections.abc import Callable, Iterable
from typing import Final

import prometheus_client
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from splitbrain.nodes.quorum.replica import Replica
from splitbrain.nodes.server.host.layer import Figures
from splitbrain.nodes.server.host.measurements import Measurements

CONTENT_TYPE: Final = prometheus_client.CONTENT_TYPE_LATEST
_CONTROLLER: Final = "kafka_controller_kafkacontroller"
_QUEUE: Final = "kafka_controller_controllereventmanager"
_RAFT: Final = "kafka_server_raft_metrics"
_US_PER_MS: Final = 1_000
#: Upper bounds of the buckets, milliseconds.
_BUCKETS_MS: Final = (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000)
#: Name and meaning of each figure of a layer.
_LAYER_GAUGES: Final = (
    ("active_controller_count", f"{_CONTROLLER}_activecontrollercount",
     "1 on the active controller, 0 elsewhere."),
    ("active_broker_count", f"{_CONTROLLER}_activebrokercount",
     "Registered brokers that are not fenced."),
    ("fenced_broker_count", f"{_CONTROLLER}_fencedbrokercount", "Fenced brokers."),
    ("topic_count", f"{_CONTROLLER}_globaltopiccount", "Topics."),
    ("partition_count", f"{_CONTROLLER}_globalpartitioncount", "Partitions."),
    ("queue_length", f"{_QUEUE}_eventqueuelength", "Events that wait in the controller's queue."),
)  # fmt: skip


class PrometheusMeasurements(Measurements):
    """Keeps one node's figures."""

    def __init__(self) -> None:
        """Nothing was measured yet."""
        # Says of each when its counting began, which nobody asks of a node.
        prometheus_client.disable_created_metrics()
        self._registry = CollectorRegistry(auto_describe=False)
        self._elections = self._histogram(
            "kafka_controller_controllerstats_leaderelectionrateandtimems",
            "Time without a known leader, until the next one was known.",
        )
        self._snapshots = self._histogram(
            "kafka_server_snapshotemitter_snapshotgenerationtimems",
            "Time in which a snapshot was written and became durable.",
        )
        self._waits = self._histogram(
            f"{_QUEUE}_eventqueuetimems", "Time that an event waited in the controller's queue."
        )
        self._work = self._histogram(
            f"{_QUEUE}_eventqueueprocessingtimems", "Time in which an event was handled."
        )
        self._errors = prometheus_client.Gauge(
            f"{_CONTROLLER}_metadataerrorcount",
            "Records that could not be made or applied.",
            registry=self._registry,
        )

    def watch(self, replica: Replica, applied_end: Callable[[], int], figures: Figures) -> None:
        """Say also, whenever asked, where this replica and its layer stand."""
        self._registry.register(_Standing(replica, applied_end, figures))

    def text(self) -> bytes:
        """All figures as they are now, in Prometheus' text format."""
        return prometheus_client.generate_latest(self._registry)

    def leader_known(self, duration_us: int) -> None:
        """Note that a leader is known again."""
        self._elections.observe(duration_us / _US_PER_MS)

    def snapshot_written(self, duration_us: int) -> None:
        """Note that a snapshot is durable."""
        self._snapshots.observe(duration_us / _US_PER_MS)

    def event_handled(self, waited_us: int, worked_us: int) -> None:
        """The controller's queue handled an event."""
        self._waits.observe(waited_us / _US_PER_MS)
        self._work.observe(worked_us / _US_PER_MS)

    def metadata_error(self) -> None:
        """A record could not be made, or applied."""
        self._errors.inc()

    def _histogram(self, name: str, text: str) -> prometheus_client.Histogram:
        return prometheus_client.Histogram(name, text, registry=self._registry, buckets=_BUCKETS_MS)


class _Standing(Collector):
    """Reads the node when it is asked."""

    def __init__(self, replica: Replica, applied_end: Callable[[], int], figures: Figures) -> None:
        self._replica = replica
        self._applied_end = applied_end
        self._figures = figures

    def collect(self) -> Iterable[Metric]:
        replica, applied_end = self._replica, self._applied_end()
        leader = -1 if replica.leader_id is None else replica.leader_id
        high_watermark, end = replica.high_watermark, replica.log_end_offset
        lag = max(high_watermark - applied_end, 0)
        for name, text, value in (
            (f"{_RAFT}_current_epoch", "Epoch of the quorum.", replica.epoch),
            (f"{_RAFT}_current_leader", "Id of the leader, -1 where none is known.", leader),
            (f"{_RAFT}_high_watermark", "One past the last committed offset.", high_watermark),
            (f"{_CONTROLLER}_metadatalogendoffset", "One past the last offset of the log.", end),
            (f"{_CONTROLLER}_lastappliedrecordoffset", "Last offset applied.", applied_end - 1),
            (f"{_CONTROLLER}_metadataloglag", "Committed records that are not applied yet.", lag),
        ):
            yield _gauge(name, text, value)
        figures = self._figures()
        for figure, name, text in _LAYER_GAUGES:
            if figure in figures:
                yield _gauge(name, text, figures[figure])


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)
