"""The bytes that a formatted folder holds: a folder outlives the program that wrote it."""

import pytest

from splitbrain.nodes.storage.durable_mark import LogPosition, open_mark
from splitbrain.nodes.storage.identity import StorageIdentity
from splitbrain.nodes.storage.layout import segment_base_offset, segment_name
from tests.unit.nodes.storage.disks import Disk

LOG = "__cluster_metadata-0"
SECTOR_BYTES = 512
MAGIC = b"SBDL"


def test_a_new_folder_holds_these_bytes(disk: Disk, identity: StorageIdentity) -> None:
    voters = disk.read(disk.folder / "voters.json").decode()
    start = '{\n  "version": 2,\n  "checksum": 232585840,\n  "voters": [\n    {\n      "nodeId": 1,'
    assert voters.startswith(start)
    assert voters.endswith('"port": 9093\n    }\n  ]\n}\n')
    assert disk.read(disk.folder / "meta.properties") == (
        b"cluster.id=test-cluster_1\ndirectory.id=AQEBAQEBAQEBAQEBAQEBAQ\nnode.id=1\nversion=1\n"
    )
    log = disk.folder / LOG
    assert sorted(disk.list(log)) == [
        "00000000000000000000.log",
        "durable-length",
        "leader-epoch-checkpoint",
    ]
    assert disk.read(log / "00000000000000000000.log") == b""
    assert disk.read(log / "leader-epoch-checkpoint") == b"0\n0\n"


def test_each_mark_has_a_sector_to_itself(disk: Disk) -> None:
    """A sector is what a power cut tears at most: the older mark must not share the newer's."""
    path = disk.folder / LOG / "durable-length"
    first, second = (slice(start, start + SECTOR_BYTES) for start in (0, SECTOR_BYTES))
    content = disk.read(path)
    assert len(content) == 2 * SECTOR_BYTES
    assert content[first].startswith(MAGIC)
    assert content[second].startswith(MAGIC)
    file = open_mark(disk, path)
    file.write(LogPosition(0, 100), 3)
    after_one = disk.read(path)
    assert after_one[first] == content[first]
    assert after_one[second] != content[second]
    file.write(LogPosition(0, 200), 7)
    after_two = disk.read(path)
    assert after_two[first] != content[first]
    assert after_two[second] == after_one[second]
    assert len(after_two) == 2 * SECTOR_BYTES
    file.close()


@pytest.mark.parametrize("offset", [0, 7, 10**19])
def test_a_segment_s_name_is_its_first_offset(offset: int) -> None:
    assert segment_name(offset) == f"{offset:020}.log"
    assert segment_base_offset(segment_name(offset)) == offset


@pytest.mark.parametrize(
    "name",
    [
        "0.log", f"{0:019}.log", f"{0:021}.log", f"{0:020}", f"{0:020}.index", f"{0:020}.log.tmp",
        "-0000000000000000001.log", "0000000000000000000a.log",
        "\u0660" * 20 + ".log", "\u00b2" * 20 + ".log", "quorum-state",
    ],
)  # fmt: skip
def test_what_is_no_segment_s_name(name: str) -> None:
    assert segment_base_offset(name) is None
