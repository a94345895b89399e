"""Principal of a client, in the wire form of Kafka's default principal builder; see envelopes.

Source: Kafka 4.3.1's DefaultPrincipalData and DefaultKafkaPrincipalBuilder; KIP-590.
"""

from struct import Struct
from typing import Final

import msgspec

from splitbrain.nodes.wire.declared import Boolean, String, kind_of
from splitbrain.nodes.wire.errors import WireError

_VERSION: Final = Struct(">h")
#: The one version that there is.
_ONLY_VERSION: Final = 0
#: Kafka reads no longer string.
_TEXT_BYTES_MAX: Final = 0x7FFF


class Principal(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A client as it was authenticated."""

    type: String = "User"
    name: String
    #: Whether a delegation token stands for the client.
    token_authenticated: Boolean = False


#: Every client of a listener without authentication.
ANONYMOUS: Final = Principal(name="ANONYMOUS")
_KIND: Final = kind_of(Principal, flexible=True)


def encode_principal(principal: Principal) -> bytes:
    """Return a principal's bytes; raises ValueError for text that is longer than Kafka reads."""
    for text in (principal.type, principal.name):
        if len(text.encode()) > _TEXT_BYTES_MAX:
            raise ValueError(f"a principal's text of {len(text)} letters is too long")
    parts = [_VERSION.pack(_ONLY_VERSION)]
    _KIND.write(principal, _ONLY_VERSION, parts)
    return b"".join(parts)


def decode_principal(content: bytes) -> Principal:
    """Return the principal that the bytes begin with, as Kafka does; raises WireError."""
    if len(content) < _VERSION.size:
        raise WireError("a principal ends before its version")
    (version,) = _VERSION.unpack_from(content)
    if version != _ONLY_VERSION:
        raise WireError(f"a principal has version {version}")
    principal, _ = _KIND.read(content, _VERSION.size, version)
    for text in (principal.type, principal.name):
        if len(text.encode()) > _TEXT_BYTES_MAX:
            raise WireError(f"a principal's text of {len(text)} letters is too long")
    return principal
