"""Events of a broker's life: everything that ``Lifecycle.step`` takes.

Past tense, frozen, tagged by class name. The host makes them: ``Started`` once and first;
``TimerElapsed`` at ``Lifecycle.deadline`` (early or late is harmless); ``ImageAdvanced`` for each
image that it published, so that what heartbeats say was applied has been; the others as answers to
effects.
"""

import msgspec

from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.wire.families.brokers import (
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
)


class Started(msgspec.Struct, frozen=True, tag=True):
    """The process is up, and its image is what it had stored."""

    image: MetadataImage


class TimerElapsed(msgspec.Struct, frozen=True, tag=True):
    """Time has passed."""


class ImageAdvanced(msgspec.Struct, frozen=True, tag=True):
    """The broker works with a newer image, of which everything is committed."""

    image: MetadataImage


class ControllerKnown(msgspec.Struct, frozen=True, tag=True):
    """The observer replica knows who leads the quorum; also unasked, whenever that changes."""

    controller_id: NodeId


class AnswerReceived(msgspec.Struct, frozen=True, tag=True):
    """A controller answered a request of ours; of one that was given up on it is ignored."""

    #: ``SendToController.number``.
    number: int
    answer: BrokerRegistrationResponse | BrokerHeartbeatResponse


class RequestFailed(msgspec.Struct, frozen=True, tag=True):
    """No answer will come to a request of ours: reset, refused, timed out, undecodable."""

    number: int


class RecoveryFinished(msgspec.Struct, frozen=True, tag=True):
    """The broker is ready to be unfenced; answers ``Recover``."""


class ShutdownAsked(msgspec.Struct, frozen=True, tag=True):
    """The process shall end, in a controlled way, or at once whatever it leads."""

    controlled: bool = True


Event = (
    Started
    | TimerElapsed
    | ImageAdvanced
    | ControllerKnown
    | AnswerReceived
    | RequestFailed
    | RecoveryFinished
    | ShutdownAsked
)
