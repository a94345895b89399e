"""One request to a controller on its way: from the frame's content to the answer's.

What a broker forwards for a client is opened here, so that the controller sees the client's request
and the broker gets its envelope back. Must never answer twice, nor decide anything.
"""

from collections.abc import Callable

import msgspec

from nodes.controller.refusals import refuse
from nodes.wire.apis import ApiKey, RequestHeader
from nodes.wire.envelopes import EnvelopeRefusedError, open_envelope, refused_envelope, seal_reply
from nodes.wire.errors import ApiError
from nodes.wire.families.controllers import EnvelopeRequest

Answer = Callable[[msgspec.Struct], None]


class Call:
    """A request, with the way back to whoever asked."""

    def __init__(self, header: RequestHeader, message: msgspec.Struct, answer: Answer) -> None:
        self.api_key = ApiKey(header.api_key)
        self.version = header.api_version
        self.message = message
        self._answer = answer

    def reply(self, message: msgspec.Struct) -> None:
        """The answer."""
        self._answer(message)

    def refuse(self, code: ApiError, reason: str | None = None) -> None:
        """The answer that refuses the whole request."""
        self._answer(refuse(self.api_key, self.message, self.version, code, reason))


def opened(envelope: EnvelopeRequest, answer: Answer) -> Call | None:
    """The call in an envelope; None if the envelope is refused, which is answered."""
    try:
        inner = open_envelope(envelope)
    except EnvelopeRefusedError as error:
        answer(refused_envelope(error.code))
        return None

    def sealed(message: msgspec.Struct) -> None:
        answer(seal_reply(message, inner.header))

    return Call(inner.header, inner.message, sealed)
