"""Tells the quorum's settings from those of controllers and brokers, as all nodes get all. Pure."""

from collections.abc import Mapping

from splitbrain.nodes.server.start.broker_settings import BROKER_SETTING_NAMES, broker_settings
from splitbrain.nodes.server.start.controller_settings import (
    CONTROLLER_SETTING_NAMES,
    controller_settings,
)


def quorums_part(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that are neither a controller's nor a broker's; those are checked.

    Raises:
        ValueError: names one of theirs that is no whole number, too small, or given twice.
    """
    controller_settings(settings)
    broker_settings(settings)
    others = CONTROLLER_SETTING_NAMES | BROKER_SETTING_NAMES
    return {name: text for name, text in settings.items() if name not in others}
