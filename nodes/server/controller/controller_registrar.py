"""Has a controller registered with the active one, whoever that is, until the image says so.

Brokers and tools learn from the registrations where each controller is reached and what it can run
with; each life of a controller has its own. An acknowledged one is committed, and only has to
arrive. Must never ask two controllers at a time, nor again for an image that lags behind: each
registration is a record more that a laggard has to catch up with.

Source: KIP-919; a real controller's registration manager, whose back-off this is.
"""

from typing import Final

import msgspec

from splitbrain.nodes.broker.settings import supported_features
from splitbrain.nodes.metadata.machine import MetadataMachine
from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.quorum.replica import Replica
from splitbrain.nodes.server.host.surroundings import CallPeer, TimerHandle, Timers
from splitbrain.nodes.storage.identity import StorageIdentity
from splitbrain.nodes.wire.apis import QUORUM_LISTENER
from splitbrain.nodes.wire.controller_apis import CONTROLLER_FEATURES
from splitbrain.nodes.wire.families.controllers import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from splitbrain.nodes.wire.families.parts import AdvertisedListener

_PLAINTEXT: Final = 0
_BACK_OFF_US_MIN: Final = 100_000
_BACK_OFF_US_MAX: Final = 120_000_000


class ControllerRegistrar:
    """One life's registration, while another node is the active controller."""

    def __init__(
        self,
        request: ControllerRegistrationRequest,
        machine: MetadataMachine,
        replica: Replica,
        timers: Timers,
        call: CallPeer | None,
    ) -> None:
        """Nothing is asked yet; ``call`` is None where nobody can be asked."""
        self.request = request
        self._machine = machine
        self._replica = replica
        self._timers = timers
        self._call = call
        self._failures_count = 0
        self._is_waiting = False
        #: Whether the registration was acknowledged, and which the image had then.
        self._is_taken = False
        self._known_when_taken: str | None = None
        self._timer: TimerHandle | None = None

    @property
    def is_registered(self) -> bool:
        """Whether the image has the registration of this life."""
        return self._known == self.request.incarnation_id

    @property
    def _known(self) -> str | None:
        """Incarnation of this controller in the image."""
        known = self._machine.image.controllers.get(self.request.controller_id)
        return None if known is None else known.incarnation_id

    def look(self) -> None:
        """Ask, if there is need and nobody was asked; to be called when image or leader changed."""
        leader_id = self._replica.leader_id
        is_pending = self._is_waiting or self._timer is not None
        if self._call is None or is_pending or self.is_registered:
            return
        if leader_id is None or leader_id == self.request.controller_id:
            return
        if self._is_taken and self._known == self._known_when_taken:
            return  # It is committed, and on its way.
        if self._machine.image.metadata_version is None:
            return  # The cluster's level does not say yet which registration it can have.
        self._is_waiting = True
        self._call(NodeId(leader_id), self.request, self._answered)

    def stop(self) -> None:
        """Ask no more."""
        self._call = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _answered(self, answer: msgspec.Struct | None) -> None:
        self._is_waiting = False
        is_taken = isinstance(answer, ControllerRegistrationResponse) and not answer.error_code
        self._is_taken, self._known_when_taken = is_taken, self._known
        # Where it was taken, a registration of another life may still come before it.
        self._failures_count = 0 if is_taken else self._failures_count + 1
        pause_us = min(_BACK_OFF_US_MIN << self._failures_count, _BACK_OFF_US_MAX)
        self._timer = self._timers.call_later(pause_us, self._again)

    def _again(self) -> None:
        self._timer = None
        self.look()


def own_registration(
    identity: StorageIdentity, incarnation_id: str
) -> ControllerRegistrationRequest:
    """Return the request of this life, 32 hex digits its ``incarnation_id``."""
    listeners = tuple(
        AdvertisedListener(
            name=QUORUM_LISTENER, host=voter.host, port=voter.port, security_protocol=_PLAINTEXT
        )
        for voter in identity.voters
        if voter.node_id == identity.node_id
    )
    return ControllerRegistrationRequest(
        controller_id=identity.node_id,
        incarnation_id=incarnation_id,
        zk_migration_ready=False,
        listeners=listeners,
        features=supported_features(CONTROLLER_FEATURES),
    )
