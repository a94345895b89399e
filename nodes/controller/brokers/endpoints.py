"""Listeners of brokers and controllers, from a request into a record.

An address that no socket can have is refused as a real controller does: by a nameless error.
"""

from collections.abc import Iterable
from typing import Final

from splitbrain.nodes.controller.basis.decisions import Refusal
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.parts import AdvertisedListener

_SECURITY_PROTOCOLS: Final = range(4)


def record_endpoints(listeners: Iterable[AdvertisedListener]) -> tuple[AdvertisedListener, ...]:
    """The listeners as records hold them; of two with one name the later, in the earlier's place.

    Raises Refusal: one has no host, no port or an unknown security protocol.
    """
    by_name: dict[str, AdvertisedListener] = {}
    for listener in listeners:
        if listener.security_protocol not in _SECURITY_PROTOCOLS:
            raise _refusal(listener, f"security protocol {listener.security_protocol} is unknown")
        by_name[listener.name] = listener
        if not listener.host.strip():
            raise _refusal(listener, "it has no host")
        if listener.port == 0:
            raise _refusal(listener, "it has no port")
    return tuple(by_name.values())


def _refusal(listener: AdvertisedListener, problem: str) -> Refusal:
    return Refusal(ApiError.UNKNOWN_SERVER_ERROR, f"listener {listener.name}: {problem}")
