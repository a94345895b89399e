"""Request and response headers, which stand before every message.

A request names its API, version, correlation id and client; a response repeats the correlation
id. The flexible form (request header 2, response header 1) ends with tagged fields; ApiVersions
answers with response header 0 whatever its version, since the asker cannot know the form yet.

Source: Kafka's protocol guide, "Request Header" and "Response Header"; KIP-511.
"""

from struct import Struct
from typing import Final

from splitbrain.nodes.wire.apis import RequestHeader
from splitbrain.nodes.wire.errors import WireError
from splitbrain.nodes.wire.varints import skip_tagged_fields

_REQUEST: Final = Struct(">hhi")
_CLIENT_ID_SIZE: Final = Struct(">h")
_CORRELATION: Final = Struct(">i")


def encode_request_header(header: RequestHeader, *, flexible: bool) -> bytes:
    """Header 2 if flexible, else header 1.

    Raises:
        ValueError: the client id is too long, or a number does not fit.
    """
    name = b"" if header.client_id is None else header.client_id.encode()
    size = -1 if header.client_id is None else len(name)
    if size > 0x7FFF or not -(1 << 31) <= header.correlation_id < 1 << 31:
        raise ValueError(f"client id or correlation id does not fit: {header}")
    return (
        _REQUEST.pack(header.api_key, header.api_version, header.correlation_id)
        + _CLIENT_ID_SIZE.pack(size)
        + name
        + (b"\0" if flexible else b"")
    )


def encode_response_header(correlation_id: int, *, flexible: bool) -> bytes:
    """Header 1 if flexible, else header 0."""
    return _CORRELATION.pack(correlation_id) + (b"\0" if flexible else b"")


def decode_request_prefix(frame: bytes) -> RequestHeader:
    """API, version and correlation id of a request; the client id is left out.

    Raises:
        WireError: the frame is too short to have them.
    """
    if len(frame) < _REQUEST.size:
        raise WireError(f"a request of {len(frame)} bytes has no header")
    api_key, api_version, correlation_id = _REQUEST.unpack_from(frame)
    return RequestHeader(api_key, api_version, correlation_id, None)


def decode_request_header(frame: bytes, *, flexible: bool) -> tuple[RequestHeader, int]:
    """The header of a request, and the position of the message after it.

    Raises:
        WireError: it is malformed.
    """
    prefix = decode_request_prefix(frame)
    position = _REQUEST.size + _CLIENT_ID_SIZE.size
    if position > len(frame):
        raise WireError("a request ends before its client id")
    (size,) = _CLIENT_ID_SIZE.unpack_from(frame, _REQUEST.size)
    end = position + max(size, 0)
    if size < -1 or end > len(frame):
        raise WireError(f"a request's client id announces {size} bytes")
    try:
        client_id = None if size == -1 else frame[position:end].decode()
    except UnicodeDecodeError as error:
        raise WireError("a request's client id is not UTF-8") from error
    if flexible:
        end = skip_tagged_fields(frame, end)
    header = RequestHeader(prefix.api_key, prefix.api_version, prefix.correlation_id, client_id)
    return header, end


def read_correlation_id(frame: bytes) -> int:
    """The number of the request that a response answers.

    Raises:
        WireError: the frame is too short to have one.
    """
    if len(frame) < _CORRELATION.size:
        raise WireError(f"a response of {len(frame)} bytes has no correlation id")
    return _CORRELATION.unpack_from(frame)[0]


def decode_response_header(frame: bytes, *, flexible: bool) -> tuple[int, int]:
    """Correlation id of a response, and the position of the message after it.

    Raises:
        WireError: it is malformed.
    """
    correlation_id = read_correlation_id(frame)
    end = _CORRELATION.size
    return correlation_id, skip_tagged_fields(frame, end) if flexible else end
