"""Small files as text that a command line takes in place of a path, pure.

A path of one machine means nothing on another one, so a file that a seed cannot say travels within
the line that needs it. Must never take a text for whole that was cut or changed on its way.
"""

import base64
import zlib
from typing import Final

import msgspec

from splitbrain.contracts.errors import UNREADABLE, UsageError

_PREFIX: Final = "blob:"
#: Longer ones are better sent as files.
LONGEST: Final = 4_000
#: Bytes of one that is unpacked; more is nobody's plan or world.
_UNPACKED_MAX: Final = 8 * 1024 * 1024


class Blob(msgspec.Struct, frozen=True):
    """A file on its way."""

    #: Name of the file, without a folder; its ending says how it is read.
    name: str
    text: str
    #: ``splitbrain 0.2.0, 4795ac6``.
    made_by: str


def is_blob(word: str) -> bool:
    """Return whether a word of the command line is a file rather than the path of one."""
    return word.startswith(_PREFIX)


def pack(blob: Blob) -> str | None:
    """Return the word of the command line; None where it would be longer than ``LONGEST``."""
    packed = base64.urlsafe_b64encode(zlib.compress(msgspec.json.encode(blob), 9))
    word = _PREFIX + packed.decode().rstrip("=")
    return word if len(word) <= LONGEST else None


def unpack(word: str) -> Blob:
    """Return the file of a word.

    Raises:
        UsageError: it was cut or changed, or is none.
    """
    text = word.removeprefix(_PREFIX)
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        reader = zlib.decompressobj()
        content = reader.decompress(packed, _UNPACKED_MAX)
        if not reader.eof or reader.unused_data:
            raise ValueError("it does not end where it should")
        return msgspec.json.decode(content, type=Blob)
    except (ValueError, zlib.error, *UNREADABLE) as error:
        shown = word if len(word) <= 24 else f"{word[:24]}..."
        raise UsageError(
            f"{shown!r} is not whole: it was cut or changed on its way",
            f"Copy the line again, all that begins with {_PREFIX} up to the next blank",
        ) from error
