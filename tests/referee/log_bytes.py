"""The logs of stopped controllers, batch by batch, as bytes. Must never write."""

from collections.abc import Mapping
from pathlib import Path

from splitbrain.nodes.storage.layout import log_folder, segment_base_offset
from splitbrain.nodes.wire.batches import decode_batch, peek_batch


def batches(folder: Path) -> Mapping[int, bytes]:
    """The bytes of every batch in a folder's log by its first offset; each is whole."""
    found: dict[int, bytes] = {}
    for path in sorted(log_folder(folder).iterdir()):
        if segment_base_offset(path.name) is not None:
            found |= split(path.read_bytes())
    return found


def split(content: bytes) -> Mapping[int, bytes]:
    """The bytes of every batch in what was read of a log, by its first offset; each is whole."""
    found: dict[int, bytes] = {}
    position = 0
    while position < len(content):
        batch, size_bytes = decode_batch(content, position), peek_batch(content, position)[2]
        found[batch.base_offset] = content[position : position + size_bytes]
        position += size_bytes
    return found


def overlap(one: Mapping[int, bytes], other: Mapping[int, bytes]) -> int:
    """How many batches two logs have alike from their beginning on.

    Raises AssertionError: a batch is another where both logs have one.
    """
    shared = sorted(set(one) & set(other))
    unlike = [offset for offset in shared if one[offset] != other[offset]]
    assert not unlike, f"the batches at {unlike} differ"
    end = min(max(one), max(other))
    missing = sorted(offset for offset in set(one) ^ set(other) if offset <= end)
    assert not missing, f"only one of the logs has batches at {missing}"
    return len(shared)
