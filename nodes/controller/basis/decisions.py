"""Input and result of a handler.

A handler looks at the metadata as of the last record that this leader appended, committed or not,
and decides: which records to append, as one batch that counts whole or not at all, and what to
answer once all of them are committed. It changes nothing itself, except that contacts remember what
was heard. Must never depend on anything but the view and the request: the log alone says what
became of a decision.

Source: a real controller's write events (KIP-631); that they see what is not yet committed, and
answer when it is, is Kafka's too.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from splitbrain.nodes.controller.basis.contacts import Contacts
from splitbrain.nodes.controller.basis.leaderships import Leaderships
from splitbrain.nodes.controller.basis.settings import ControllerSettings
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.records import MetadataRecord
from splitbrain.nodes.quorum.identifiers import Microseconds, NodeId, Offset
from splitbrain.nodes.quorum.random_source import RandomSource
from splitbrain.nodes.wire.errors import ApiError


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs of a decision, besides the request."""

    #: With every record that this leader appended in it.
    image: MetadataImage
    #: Where the first record of the decision will stand; a new broker's epoch.
    next_offset: Offset
    #: Of a monotonic clock.
    now: Microseconds
    settings: ControllerSettings
    #: When brokers were last heard of; no record says that.
    contacts: Contacts
    #: For topic ids and the first broker of a placement.
    random: RandomSource
    #: Of this cluster, as brokers name it.
    cluster_id: str = ""
    #: Of this controller.
    node_id: NodeId
    #: A cache over images; a host that keeps one spares each decision the first count.
    leaderships: Leaderships = msgspec.field(default_factory=Leaderships)


class Decision(msgspec.Struct, frozen=True):
    """Result of a request."""

    #: The response's message; None where nobody asked (time did).
    answer: msgspec.Struct | None
    #: To be appended together; none where nothing changes.
    records: Sequence[MetadataRecord] = ()


#: Decides about one request of one API, in the version that it came in.
Handler = Callable[[View, Any, int], Decision]


class Refusal(Exception):
    """A request, or one item of it, is refused; the answer carries code and message."""

    def __init__(self, code: ApiError, message: str | None = None) -> None:
        self.code = code
        self.message = message
        super().__init__(f"{code.name}: {message}")


def bad_request(problem: str) -> Refusal:
    """Return the refusal of a request that makes no sense."""
    return Refusal(ApiError.INVALID_REQUEST, problem)
