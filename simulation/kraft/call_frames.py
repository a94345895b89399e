"""Calls of the control plane as the asked node sees them, whether or not they went as frames.

Must never make a difference between the two.
"""

from typing import Final

from splitbrain.nodes.wire.apis import RequestHeader
from splitbrain.nodes.wire.control_plane import TABLES, ReceivedCall, api_key_of_call, decode_call
from splitbrain.simulation.kraft.messages import SIZE_BYTES, PeerCall

_CORRELATION_MASK: Final = 0x7FFFFFFF


def read_call(message: PeerCall) -> ReceivedCall:
    """What a node asks, in the highest version that we speak: all are of one release."""
    if message.frame is not None:
        return decode_call(message.frame[SIZE_BYTES:])
    api_key = api_key_of_call(message.request)
    version = TABLES[api_key].versions.highest
    header = RequestHeader(api_key, version, message.correlation & _CORRELATION_MASK, None)
    return ReceivedCall(header, message.request)
