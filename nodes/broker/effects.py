"""Effects of a broker's life: everything that ``Lifecycle.step`` returns.

Imperatives, frozen, tagged by class name, performed in the order given. Nothing here has to be
durable before something else, except what ``MayStop`` says.
"""

import msgspec

from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.wire.families.brokers import BrokerHeartbeatRequest, BrokerRegistrationRequest


class FindController(msgspec.Struct, frozen=True, tag=True):
    """Say ``ControllerKnown`` if the observer replica knows a leader; asked again if it does not.

    The controller that was asked before did not answer, or is not the active one: close the
    connection to it.
    """


class SendToController(msgspec.Struct, frozen=True, tag=True):
    """Send a request; one is in flight at a time."""

    #: Ascending; given back with the answer.
    number: int
    controller_id: NodeId
    request: BrokerRegistrationRequest | BrokerHeartbeatRequest


class AbandonRequest(msgspec.Struct, frozen=True, tag=True):
    """Nobody waits for an answer to this request any more: close its connection."""

    number: int


class Recover(msgspec.Struct, frozen=True, tag=True):
    """The controller says that the broker has applied its own registration: get ready to serve.

    Then say ``RecoveryFinished``; a broker without records has nothing to recover.
    """


class BecameRunning(msgspec.Struct, frozen=True, tag=True):
    """The broker was unfenced for the first time: open the listener for clients."""


class MayStop(msgspec.Struct, frozen=True, tag=True):
    """The life is over; nothing is sent any more, and the process may end."""

    #: Why, in words.
    reason: str
    #: Whether the broker comes to an end as it should; otherwise the process exits with an error.
    clean: bool
    #: To be stored if clean, as the next process's ``previous_broker_epoch``.
    broker_epoch: int


Effect = FindController | SendToController | AbandonRequest | Recover | BecameRunning | MayStop
