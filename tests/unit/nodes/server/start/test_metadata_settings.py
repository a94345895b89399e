"""Settings of controllers and brokers from text: both names, whole numbers, others' passed over."""

from collections.abc import Callable
from typing import Any

import pytest

from splitbrain.nodes.broker.settings import BrokerSettings
from splitbrain.nodes.controller.basis.settings import ControllerSettings
from splitbrain.nodes.server.start.metadata_settings import (
    BROKER_SETTING_NAMES,
    CONTROLLER_SETTING_NAMES,
    broker_settings,
    controller_settings,
)

Reader = Callable[[dict[str, str]], Any]


def test_nothing_given_is_kafkas_defaults_and_settings_of_others_are_passed_over() -> None:
    assert controller_settings({}) == ControllerSettings()
    assert controller_settings({"fetch_timeout_ms": "1"}) == ControllerSettings()
    assert broker_settings({}) == BrokerSettings()
    others = {"fetch_timeout_ms": "1", "broker.session.timeout.ms": "7"}
    assert broker_settings(others) == BrokerSettings()


def test_brokers_and_controllers_share_no_name() -> None:
    assert not BROKER_SETTING_NAMES & CONTROLLER_SETTING_NAMES


@pytest.mark.parametrize(
    ("read", "kafkas", "ours"),
    [
        (broker_settings, "broker.heartbeat.interval.ms", "heartbeat_interval_ms"),
        (controller_settings, "broker.session.timeout.ms", "broker_session_timeout_ms"),
    ],
)
def test_a_setting_goes_by_kafkas_name_and_by_ours(read: Reader, kafkas: str, ours: str) -> None:
    for name in (kafkas, ours):
        assert getattr(read({name: "300"}), ours) == 300
        with pytest.raises(ValueError, match=rf"'{name}' is 'soon', not a whole number"):
            read({name: "soon"})
        with pytest.raises(ValueError, match=rf"'{name}' is 0; choose 1 or more"):
            read({name: "0"})
    with pytest.raises(ValueError, match=r"given twice, by Kafka's name and by ours"):
        read({ours: "1", kafkas: "1"})


def test_an_interval_of_0_is_never() -> None:
    assert controller_settings({"metadata.max.idle.interval.ms": "0"}).max_idle_interval_ms == 0
