"""One request to a controller on its way: from the frame's content to the answer's.

A broker's envelope is opened here, so that the controller sees the client's request and the broker
gets its envelope back.
"""

from collections.abc import Callable, Collection, Mapping

import msgspec

from splitbrain.nodes.controller.roles.refusals import refuse
from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader
from splitbrain.nodes.wire.envelopes import (
    EnvelopeRefusedError,
    open_envelope,
    refused_envelope,
    seal_frame,
    seal_reply,
)
from splitbrain.nodes.wire.errors import ApiError, ForeignPartitionError
from splitbrain.nodes.wire.families.controllers import EnvelopeRequest
from splitbrain.nodes.wire.messages import Endpoint, encode_refusal

Answer = Callable[[msgspec.Struct], None]


class Call:
    """A request, with the way back to whoever asked."""

    def __init__(self, header: RequestHeader, message: msgspec.Struct, answer: Answer) -> None:
        self.api_key = ApiKey(header.api_key)
        self.version = header.api_version
        self.message = message
        #: Takes the answer, once.
        self.reply = answer

    def refuse(self, code: ApiError, reason: str | None = None) -> None:
        """The answer that refuses the whole request."""
        self.reply(refuse(self.api_key, self.message, self.version, code, reason))


def opened(
    envelope: EnvelopeRequest,
    answer: Answer,
    *,
    served: Collection[ApiKey],
    endpoints: Mapping[NodeId, Endpoint],
) -> Call | None:
    """Return the call in a broker's envelope; None if that is refused, which is answered.

    ``answer`` takes the envelope that goes back. ``endpoints``: where voters listen, for who asks
    about the quorum.
    """
    try:
        inner = open_envelope(envelope)
    except EnvelopeRefusedError as error:
        answer(refused_envelope(error.code))
        return None
    except ForeignPartitionError as error:
        answer(seal_frame(encode_refusal(error.header, error.code)))
        return None
    if inner.header.api_key not in served:
        answer(refused_envelope(ApiError.UNSUPPORTED_VERSION))
        return None

    def sealed(message: msgspec.Struct) -> None:
        answer(seal_reply(message, inner.header, endpoints=endpoints))

    return Call(inner.header, inner.message, sealed)
