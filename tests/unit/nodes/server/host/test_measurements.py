"""How long a node knew no leader, and what it tells Prometheus of all it measured."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

from splitbrain.nodes.quorum.identifiers import Microseconds
from splitbrain.nodes.server.host.measurements import LeaderlessTime
from splitbrain.nodes.server.machine.prometheus import PrometheusMeasurements
from splitbrain.systems.kraft.status import read_figures

CONTROLLER = "kafka_controller_kafkacontroller"
QUEUE = "kafka_controller_controllereventmanager"
ELECTIONS = "kafka_controller_controllerstats_leaderelectionrateandtimems"
SNAPSHOTS = "kafka_server_snapshotemitter_snapshotgenerationtimems"


def test_time_without_a_leader_ends_when_one_is_known() -> None:
    leaderless = LeaderlessTime(Microseconds(100))
    assert leaderless.measure(Microseconds(300), leader_known=False) is None
    assert leaderless.measure(Microseconds(900), leader_known=True) == 800
    assert leaderless.measure(Microseconds(950), leader_known=True) is None
    assert leaderless.measure(Microseconds(1_000), leader_known=False) is None
    assert leaderless.measure(Microseconds(1_200), leader_known=False) is None
    assert leaderless.measure(Microseconds(1_500), leader_known=True) == 500


def figures_of(measurements: PrometheusMeasurements) -> dict[str, float]:
    figures = read_figures(measurements.text().decode())
    assert figures is not None
    return figures


def test_durations_are_told_in_milliseconds() -> None:
    measurements = PrometheusMeasurements()
    measurements.leader_known(1_500_000)
    measurements.leader_known(250_000)
    measurements.snapshot_written(40_000)
    measurements.event_handled(2_000, 500)
    measurements.metadata_error()
    figures = figures_of(measurements)
    assert figures[f"{ELECTIONS}_sum"] == 1_750
    assert figures[f"{ELECTIONS}_count"] == 2
    assert figures[f"{SNAPSHOTS}_sum"] == 40
    assert figures[f"{QUEUE}_eventqueuetimems_sum"] == 2
    assert figures[f"{QUEUE}_eventqueueprocessingtimems_sum"] == 0.5
    assert figures[f"{CONTROLLER}_metadataerrorcount"] == 1


def replica(**fields: Any) -> Any:
    known = {"leader_id": 2, "epoch": 7, "high_watermark": 40, "log_end_offset": 45}
    return cast(Any, SimpleNamespace(**{**known, **fields}))


def nothing() -> Mapping[str, float]:
    return {}


def test_where_a_replica_stands_is_read_when_it_is_asked() -> None:
    applied_ends = [30, 40]
    measurements = PrometheusMeasurements()
    measurements.watch(replica(), lambda: applied_ends.pop(0), nothing)
    first, second = figures_of(measurements), figures_of(measurements)
    assert first["kafka_server_raft_metrics_current_epoch"] == 7
    assert first["kafka_server_raft_metrics_current_leader"] == 2
    assert first[f"{CONTROLLER}_metadatalogendoffset"] == 45
    lag = f"{CONTROLLER}_metadataloglag"
    assert (first[lag], second[lag]) == (10, 0)
    assert second[f"{CONTROLLER}_lastappliedrecordoffset"] == 39
    assert f"{CONTROLLER}_activecontrollercount" not in first


def test_nobody_leads_and_nothing_is_committed_yet() -> None:
    measurements = PrometheusMeasurements()
    measurements.watch(replica(leader_id=None, high_watermark=-1), lambda: 0, nothing)
    figures = figures_of(measurements)
    assert figures["kafka_server_raft_metrics_current_leader"] == -1
    assert figures[f"{CONTROLLER}_metadataloglag"] == 0


def test_what_a_layer_counts_gets_the_names_of_kafkas_beans() -> None:
    measurements = PrometheusMeasurements()
    counted = {"active_controller_count": 1, "fenced_broker_count": 3, "queue_length": 2}
    measurements.watch(replica(), lambda: 0, lambda: counted)
    figures = figures_of(measurements)
    assert figures[f"{CONTROLLER}_activecontrollercount"] == 1
    assert figures[f"{CONTROLLER}_fencedbrokercount"] == 3
    assert figures[f"{QUEUE}_eventqueuelength"] == 2
    assert f"{CONTROLLER}_activebrokercount" not in figures
