"""Settings of a broker from text: both names, whole numbers, and what is not its own."""

import pytest

from splitbrain.nodes.broker.settings import BrokerSettings
from splitbrain.nodes.server.start.broker_settings import BROKER_SETTING_NAMES, broker_settings
from splitbrain.nodes.server.start.controller_settings import CONTROLLER_SETTING_NAMES


def test_nothing_given_is_kafkas_defaults() -> None:
    assert broker_settings({}) == BrokerSettings()


@pytest.mark.parametrize("name", ["broker.heartbeat.interval.ms", "heartbeat_interval_ms"])
def test_a_setting_goes_by_kafkas_name_and_by_ours(name: str) -> None:
    assert broker_settings({name: "300"}).heartbeat_interval_ms == 300


def test_settings_of_others_are_passed_over() -> None:
    others = {"fetch_timeout_ms": "1", "broker.session.timeout.ms": "7"}
    assert broker_settings(others) == BrokerSettings()


def test_brokers_and_controllers_share_no_name() -> None:
    assert not BROKER_SETTING_NAMES & CONTROLLER_SETTING_NAMES


def test_what_is_no_number_zero_or_given_twice_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"'heartbeat_interval_ms' is 'soon', not a whole number"):
        broker_settings({"heartbeat_interval_ms": "soon"})
    with pytest.raises(ValueError, match=r"'heartbeat_interval_ms' is 0; choose 1 or more"):
        broker_settings({"heartbeat_interval_ms": "0"})
    with pytest.raises(ValueError, match=r"given twice, by Kafka's name and by ours"):
        broker_settings({"heartbeat_interval_ms": "1", "broker.heartbeat.interval.ms": "1"})
