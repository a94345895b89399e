"""One request at a time to whichever controller is active, until it is answered or too old.

A controller that does not answer, or says that it is not the active one, is forgotten: the request
waits until another is known, or the same one after a pause, and goes out again as it was. Must
never have two requests under way, nor take an answer for one that it did not last send.

Source: a real broker's request thread to the controllers (KIP-590). There a controller that refuses
and is still believed to lead is asked again without any pause; here it is not.
"""

import msgspec

from splitbrain.nodes.broker.effects import AbandonRequest, Effect, FindController, SendToController
from splitbrain.nodes.broker.settings import BrokerSettings
from splitbrain.nodes.quorum.identifiers import Microseconds, NodeId
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

Request = BrokerRegistrationRequest | BrokerHeartbeatRequest
Answer = BrokerRegistrationResponse | BrokerHeartbeatResponse


class Tried(msgspec.Struct, frozen=True):
    """The request that the channel is at."""

    request: Request
    #: When it is too old.
    until: Microseconds
    #: Number under which it was sent last; None while it waits for a controller.
    number: int | None = None


class ControllerChannel:
    """The request under way, and the controller that it goes to."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._controller_id: NodeId | None = None
        #: The node that was forgotten last; it is not asked before the pause is over.
        self._avoided: NodeId | None = None
        self._find_at: Microseconds | None = None
        self._tried: Tried | None = None
        self._last_number = 0

    @property
    def is_busy(self) -> bool:
        """Whether a request is under way."""
        return self._tried is not None

    @property
    def deadline(self) -> Microseconds | None:
        """When ``elapsed`` is wanted."""
        if self._tried is None:
            return None
        if self._find_at is None or self._tried.number is not None:
            return self._tried.until
        return min(self._find_at, self._tried.until)

    def submit(self, now: Microseconds, request: Request) -> list[Effect]:
        """The request is tried for one heartbeat interval from now on."""
        until = Microseconds(now + self._settings.heartbeat_interval)
        self._tried = Tried(request, until)
        return self._sent() if self._controller_id is not None else self._sought(now)

    def controller_known(self, controller_id: NodeId) -> list[Effect]:
        """Return the leader; one that was just forgotten is not taken before the pause is over."""
        if controller_id in (self._controller_id, self._avoided):
            return []
        self._controller_id, self._avoided, self._find_at = controller_id, None, None
        return [*self._abandoned(), *self._sent()] if self._tried is not None else []

    def answered(
        self, now: Microseconds, number: int, answer: Answer
    ) -> tuple[Answer | None, list[Effect]]:
        """The answer if it is one from the active controller to the request under way."""
        if self._tried is None or self._tried.number != number:
            return None, []
        if answer.error_code == ApiError.NOT_CONTROLLER:
            return None, self._forgotten(now)
        self._tried = None
        return answer, []

    def failed(self, now: Microseconds, number: int) -> list[Effect]:
        """No answer will come to the request with this number."""
        if self._tried is None or self._tried.number != number:
            return []
        return self._forgotten(now)

    def elapsed(self, now: Microseconds) -> tuple[bool, list[Effect]]:
        """Whether the request under way is given up on, and what is to be done."""
        tried = self._tried
        if tried is None:
            return False, []
        if now >= tried.until:
            effects = self._abandoned()
            self._tried = None
            if tried.number is not None:
                self._controller_id = None
            self._avoided = self._find_at = None
            return True, effects
        if tried.number is None and self._find_at is not None and now >= self._find_at:
            self._avoided = None
            return False, self._sought(now)
        return False, []

    def close(self) -> None:
        """Nothing is under way any more."""
        self._tried = self._find_at = None

    def _sent(self) -> list[Effect]:
        assert self._tried is not None
        assert self._controller_id is not None
        self._last_number += 1
        self._tried = msgspec.structs.replace(self._tried, number=self._last_number)
        return [SendToController(self._last_number, self._controller_id, self._tried.request)]

    def _abandoned(self) -> list[Effect]:
        """Return the request under way, where an answer to it could still come."""
        is_sent = self._tried is not None and self._tried.number is not None
        return [AbandonRequest(self._last_number)] if is_sent else []

    def _sought(self, now: Microseconds) -> list[Effect]:
        self._find_at = Microseconds(now + self._settings.find_controller_back_off)
        return [FindController()]

    def _forgotten(self, now: Microseconds) -> list[Effect]:
        assert self._tried is not None
        self._tried = msgspec.structs.replace(self._tried, number=None)
        self._avoided, self._controller_id = self._controller_id, None
        return self._sought(now)
