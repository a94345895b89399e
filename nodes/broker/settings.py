"""Identity of a broker, and how often it sends it.

Source: Kafka's ``broker.heartbeat.interval.ms``, ``initial.broker.registration.timeout.ms``; the
pause before a controller is looked for again is a real broker's poll.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from splitbrain.nodes.quorum.identifiers import Microseconds
from splitbrain.nodes.wire.apis import VersionRange
from splitbrain.nodes.wire.controller_apis import CONTROLLER_FEATURES
from splitbrain.nodes.wire.families.parts import AdvertisedListener, SupportedFeature

#: A real broker of Kafka 4.3.1 has the same as its controllers.
BROKER_FEATURES: Final = CONTROLLER_FEATURES
_PER_MILLISECOND: Final = 1000


class BrokerIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Identity that one process announces as long as it lives."""

    broker_id: int
    cluster_id: str
    #: 32 hex digits, drawn anew at each start.
    incarnation_id: str
    listeners: tuple[AdvertisedListener, ...]
    #: Ids of its log directories, 32 hex digits each.
    directories: tuple[str, ...]
    #: Those of them that take no new replicas.
    cordoned_directories: tuple[str, ...] = ()
    features: Mapping[str, VersionRange] = BROKER_FEATURES
    rack: str | None = None
    #: Epoch of the process before, if it stopped cleanly; else -1.
    previous_broker_epoch: int = -1


class BrokerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Times of a broker; Kafka's defaults."""

    heartbeat_interval_ms: int = 2000
    #: A broker that could not register for so long stops.
    initial_registration_timeout_ms: int = 60_000
    #: Pause before a controller is looked for again, and before the same one is asked again.
    find_controller_back_off_ms: int = 100
    #: How long a broker that shall end waits to be let go; a real one waits for five minutes.
    controlled_shutdown_timeout_ms: int = 5_000

    def __post_init__(self) -> None:
        """Refuses times that are none; raises ValueError: one is not positive."""
        if min(msgspec.structs.astuple(self)) <= 0:
            raise ValueError("every time of a broker must be positive")

    @property
    def heartbeat_interval(self) -> Microseconds:
        """Between heartbeats, and how long one request is tried."""
        return Microseconds(self.heartbeat_interval_ms * _PER_MILLISECOND)

    @property
    def initial_registration_timeout(self) -> Microseconds:
        """From the start to the first registration."""
        return Microseconds(self.initial_registration_timeout_ms * _PER_MILLISECOND)

    @property
    def controlled_shutdown_timeout(self) -> Microseconds:
        """From when it is asked to end."""
        return Microseconds(self.controlled_shutdown_timeout_ms * _PER_MILLISECOND)

    @property
    def find_controller_back_off(self) -> Microseconds:
        """Between two questions for the controller."""
        return Microseconds(self.find_controller_back_off_ms * _PER_MILLISECOND)


def supported_features(features: Mapping[str, VersionRange]) -> tuple[SupportedFeature, ...]:
    """Return the features as a registration names them."""
    return tuple(
        SupportedFeature(
            name=name, min_supported_version=levels.lowest, max_supported_version=levels.highest
        )
        for name, levels in features.items()
    )
