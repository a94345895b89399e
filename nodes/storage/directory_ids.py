"""Directory ids in Kafka's spelling: base64 of the 16 bytes, URL-safe, without padding.

Source: Kafka's ``Uuid``; KIP-858.
"""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode

from splitbrain.nodes.quorum.identifiers import DirectoryId

_TEXT_LENGTH = 22


def to_kafka_text(directory_id: DirectoryId) -> str:
    """Return the id as Kafka's files spell it (22 characters).

    Raises ValueError: it is not 32 hex digits.
    """
    raw = bytes.fromhex(directory_id)
    if len(raw) != 16 or raw.hex() != directory_id:
        raise ValueError(f"directory id {directory_id!r} is not 32 lower-case hex digits")
    return urlsafe_b64encode(raw).decode().rstrip("=")


def from_kafka_text(text: str) -> DirectoryId:
    """Return the id that Kafka's spelling names.

    Raises ValueError: it is not the spelling of a 128-bit id.
    """
    try:
        raw = urlsafe_b64decode(text + "==") if len(text) == _TEXT_LENGTH else b""
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"directory id {text!r} is not base64") from error
    directory_id = DirectoryId(raw.hex())
    # Decoding skips foreign characters and unused bits: only the exact spelling is one.
    if len(raw) != 16 or to_kafka_text(directory_id) != text:
        raise ValueError(f"directory id {text!r} is not a 128-bit id in Kafka's spelling")
    return directory_id
