"""Names of the files in a node's data folder; Kafka's where Kafka has one.

    meta.properties                      cluster, node and directory id (Kafka's)
    voters.json                          the voter set, fixed at formatting (ours)
    .lock                                held by the running node (Kafka's)
    __cluster_metadata-0/
        00000000000000000000.log         record batches; the name is the first offset (Kafka's)
        leader-epoch-checkpoint          first offset of each epoch (Kafka's)
        quorum-state                     epoch, leader, vote (Kafka's)
        durable-length                   how much of the log was flushed (ours)
        <offset>-<epoch>.checkpoint      snapshots (Kafka's); see ``snapshots``

No index files are written: Kafka builds its own when it opens the folder, and this node keeps a
sparse index in memory.
"""

from pathlib import Path
from typing import Final

META_PROPERTIES: Final = "meta.properties"
VOTERS: Final = "voters.json"
LOCK: Final = ".lock"
LOG_FOLDER: Final = "__cluster_metadata-0"
EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"
QUORUM_STATE: Final = "quorum-state"
DURABLE_LENGTH: Final = "durable-length"
SEGMENT_SUFFIX: Final = ".log"
_OFFSET_DIGITS: Final = 20


def log_folder(folder: Path) -> Path:
    """Return the log's folder within a data folder."""
    return folder / LOG_FOLDER


def segment_name(base_offset: int) -> str:
    """File name of the segment that starts at this offset."""
    return f"{base_offset:0{_OFFSET_DIGITS}d}{SEGMENT_SUFFIX}"


def segment_base_offset(name: str) -> int | None:
    """First offset of the segment with this file name; None if it names no segment."""
    digits = name.removesuffix(SEGMENT_SUFFIX)
    if digits == name or len(digits) != _OFFSET_DIGITS or not digits.isascii():
        return None
    return int(digits) if digits.isdigit() else None
