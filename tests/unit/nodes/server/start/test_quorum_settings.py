"""Settings of the quorum from text: ours by default, by our names or by Kafka's."""

import msgspec
import pytest

from splitbrain.nodes.quorum.settings import QuorumSettings
from splitbrain.nodes.server.start.quorum_settings import quorum_settings


def test_defaults_are_ours_and_the_triggers_of_snapshots_kafkas() -> None:
    settings = quorum_settings({})
    assert settings == QuorumSettings()
    assert settings.stands_when_leader_is_gone
    assert settings.snapshot_max_new_record_bytes == 20_971_520
    assert settings.snapshot_max_interval_ms == 3_600_000


@pytest.mark.parametrize(
    ("name", "text", "fields"),
    [
        ("controller.quorum.fetch.timeout.ms", "2000", {"fetch_timeout_ms": 2000}),
        (
            "controller.quorum.election.timeout.ms",
            "1000",
            {"election_timeout_ms_min": 1000, "election_timeout_ms_max": 2000},
        ),
        ("controller.quorum.election.backoff.max.ms", "900", {"election_back_off_ms_max": 900}),
        ("controller.quorum.request.timeout.ms", "1500", {"request_timeout_ms": 1500}),
        ("controller.quorum.fetch.snapshot.max.bytes", "9", {"fetch_snapshot_max_bytes": 9}),
        (
            "metadata.log.max.record.bytes.between.snapshots",
            "7",
            {"snapshot_max_new_record_bytes": 7},
        ),
        ("metadata.log.max.snapshot.interval.ms", "0", {"snapshot_max_interval_ms": 0}),
        # A parked fetch is answered in half the fetch timeout.
        ("fetch_timeout_ms", "60", {"fetch_timeout_ms": 60, "fetch_max_wait_ms": 30}),
        # Kafka's nodes wait for the timeout.
        ("stands_when_leader_is_gone", "false", {"stands_when_leader_is_gone": False}),
    ],
)
def test_a_setting_goes_by_kafkas_name_or_by_ours(
    name: str, text: str, fields: dict[str, int]
) -> None:
    assert quorum_settings({name: text}) == msgspec.structs.replace(QuorumSettings(), **fields)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"fetch_timeout": "1"}, "unknown setting 'fetch_timeout'"),
        ({"fetch_timeout_ms": "soon"}, "not a whole number"),
        ({"fetch_timeout_ms": "5", "controller.quorum.fetch.timeout.ms": "5"}, "given twice"),
        ({"bugs": "1"}, "unknown setting 'bugs'"),
        ({"fetch_max_wait_ms": "500"}, "fetch_max_wait_ms"),
        ({"stands_when_leader_is_gone": "1"}, "not true or false"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        quorum_settings(given)
