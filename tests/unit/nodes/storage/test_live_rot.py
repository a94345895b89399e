"""Bytes that rot under a running node: told as corruption, or without any effect; never a lie.

Found by the simulation (INV-31): a rotten header ended the node as a defect.
"""

from pathlib import Path

import pytest

from splitbrain.nodes.quorum.identifiers import DirectoryId, Epoch, NodeId, Offset
from splitbrain.nodes.storage.errors import CorruptStorageError
from splitbrain.nodes.storage.identity import StorageIdentity, format_storage
from splitbrain.nodes.storage.log import LogStore
from splitbrain.nodes.wire.batches import split_batches
from splitbrain.nodes.wire.errors import WireError
from splitbrain.simulation.disk.file_system import MemoryFileSystem

FOLDER = Path("/data")
LOG = FOLDER / "__cluster_metadata-0" / "00000000000000000000.log"
BATCHES = 4
MASKS = (0x01, 0x40, 0x80)

Record = tuple[int, int, bytes | None]


def opened() -> tuple[MemoryFileSystem, LogStore]:
    filesystem = MemoryFileSystem()
    filesystem.make_folder(FOLDER)
    identity = StorageIdentity("cluster-of-the-rot-tests", NodeId(1), DirectoryId("a" * 32), ())
    format_storage(filesystem, FOLDER, identity)
    log, _ = LogStore.open(filesystem, FOLDER)
    for number in range(BATCHES):
        payloads = [(None, b"value %d" % number)] * 2
        log.append_records(log.end_offset, Epoch(1 + number // 2), 1000, payloads)
    log.flush()
    return filesystem, log


def records(log: LogStore, start: int = 0) -> list[Record]:
    return [
        (record.offset, batch.epoch, record.value)
        for batch in log.batches(Offset(start), log.end_offset)
        for record in batch.records
        if record.offset >= start
    ]


INTACT = records(opened()[1])
CONTENT = opened()[0].durable_content(LOG)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("start", [0, 3, 5])
def test_no_rotten_byte_is_taken_for_a_record(start: int, mask: int) -> None:
    assert CONTENT is not None
    for position in range(len(CONTENT)):
        filesystem, log = opened()
        filesystem.rot(LOG, position, mask)
        try:
            read = records(log, start)
        except CorruptStorageError:
            continue
        assert read == INTACT[start:], f"byte {position}"


@pytest.mark.parametrize("mask", MASKS)
def test_no_rotten_header_reaches_a_follower_as_another_place_or_epoch(mask: int) -> None:
    """Rot outside of the checksum is the leader's to see, the rest the follower's codec's."""
    intact = split_batches(opened()[1].read(Offset(0), Offset(8), 1 << 20))
    for position in range(61):
        filesystem, log = opened()
        filesystem.rot(LOG, position, mask)
        try:
            headers = split_batches(log.read(Offset(0), Offset(8), 1 << 20))
        except (CorruptStorageError, WireError):
            continue
        assert headers == intact[: len(headers)], f"byte {position}"
