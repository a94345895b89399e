"""Says which record of a node's log lies at a byte of one of its files.

Told from the bytes before it alone, so that damage at that byte does not matter. Must never judge:
what is behind the byte may be damaged, cut off or older.
"""

import struct
from pathlib import PurePosixPath

from splitbrain.nodes.storage.layout import LOG_FOLDER, segment_base_offset
from splitbrain.nodes.wire.batches import HEADER_BYTES, peek_batch


def record_at(file: str, before: bytes) -> str | None:
    """The record that the byte after ``before`` belongs to; None where the file is no log.

    Args:
        file: below the data folder.
        before: all bytes of the file up to that one.
    """
    path = PurePosixPath(file)
    offset = segment_base_offset(path.name)
    if path.parent.name != LOG_FOLDER or offset is None:
        return None
    position = 0
    while position + HEADER_BYTES <= len(before):
        try:
            _, last_offset, size_bytes = peek_batch(before, position)
        except struct.error:
            break
        if position + size_bytes > len(before):
            return _named(offset, int(last_offset))
        offset = int(last_offset) + 1
        position += size_bytes
    return _named(offset, None)


def _named(first: int, last: int | None) -> str:
    if last is None:
        return f"the record at offset {first} of the log, or its batch's header"
    if last == first:
        return f"the record at offset {first} of the log"
    return f"one of the records at offsets {first} to {last} of the log"
