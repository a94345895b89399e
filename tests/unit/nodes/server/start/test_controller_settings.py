"""Settings of a controller from text: both names, whole numbers, and what is not its own."""

import pytest

from splitbrain.nodes.controller.basis.settings import ControllerSettings
from splitbrain.nodes.server.start.controller_settings import controller_settings


def test_nothing_given_is_kafkas_defaults() -> None:
    assert controller_settings({}) == ControllerSettings()


@pytest.mark.parametrize("name", ["broker.session.timeout.ms", "broker_session_timeout_ms"])
def test_a_setting_goes_by_kafkas_name_and_by_ours(name: str) -> None:
    assert controller_settings({name: "3000"}).broker_session_timeout_ms == 3_000


def test_settings_of_the_quorum_are_passed_over() -> None:
    assert controller_settings({"fetch_timeout_ms": "1"}) == ControllerSettings()


def test_an_interval_of_0_is_never_and_a_session_of_0_is_refused() -> None:
    assert controller_settings({"metadata.max.idle.interval.ms": "0"}).max_idle_interval_ms == 0
    with pytest.raises(ValueError, match=r"'broker.session.timeout.ms' is 0; choose 1 or more"):
        controller_settings({"broker.session.timeout.ms": "0"})


def test_what_is_no_number_or_given_twice_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"'num.partitions' is 'many', not a whole number"):
        controller_settings({"num.partitions": "many"})
    with pytest.raises(ValueError, match=r"given twice, by Kafka's name and by ours"):
        controller_settings({"num.partitions": "1", "num_partitions": "1"})
