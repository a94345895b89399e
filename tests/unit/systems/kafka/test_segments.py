"""Brokers' files: what the client library encoded is read again by a reader of our own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kafka.record import MemoryRecordsBuilder

from splitbrain.contracts.committed import RecordNumber
from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.systems.kafka.adapter import KafkaSystem
from splitbrain.systems.kafka.records import Stamp, batch_of
from splitbrain.systems.kafka.segments import replica_logs


def placed(batch: bytes, offset: int, epoch: int) -> bytes:
    """The batch as a leader appends it: neither number is under the checksum."""
    return offset.to_bytes(8, "big") + batch[8:12] + epoch.to_bytes(4, "big") + batch[16:]


def of_client(value: str, stamp: Stamp | None = None) -> bytes:
    return batch_of(f'["0",{value}]'.encode(), stamp)


def built(*values: bytes | None, compression: int = 0, key: bytes | None = b"k") -> bytes:
    """A batch of several records, as no client of ours sends them."""
    builder: Any = MemoryRecordsBuilder(magic=2, compression_type=compression, batch_size=10_000)
    for value in values:
        builder.append(timestamp=1_700_000_000_000, key=key, value=value)
    builder.close()
    return bytes(builder.buffer())


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write(*parts: bytes, partition: str = "splitbrain-0", base: int = 0) -> Path:
        folder = tmp_path / partition
        folder.mkdir(exist_ok=True)
        segment = folder / f"{base:020}.log"
        segment.write_bytes(b"".join(parts))
        return segment

    return write


def test_records_have_their_offsets_epochs_values_and_marks(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    stamp = Stamp(producer_id=7, epoch=3, sequence=40, transactional_id="t", produce_version=12)
    write(placed(of_client("5"), 0, 1), placed(of_client('"x"', stamp), 1, 2))
    write(placed(built(b'["0",8]', b"of others", None), 300, 2), base=300)
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nsplitbrain 0 2\n")
    (log,) = replica_logs("n1", tmp_path, "splitbrain")
    assert (log.node, log.log, log.start_offset) == ("n1", "0", 0)
    assert (log.committed_end, log.end_offset) == (2, 303)
    found = [(each.offset, each.epoch, each.value) for each in log.records]
    assert found == [(0, 1, 5), (1, 2, "x"), (300, 2, 8), (301, 2, None), (302, 2, None)]
    marks = [each.sequence for each in log.records]
    assert marks == [None, RecordNumber(7, 3, 40), None, None, None]


def test_equal_bytes_have_equal_digests_and_others_have_others(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    batch = of_client("5")
    for partition, part in enumerate((batch, batch, of_client("6"))):
        write(placed(part, 0, 1), partition=f"splitbrain-{partition}")
    first, second, third = (log.records[0] for log in replica_logs("n1", tmp_path, "splitbrain"))
    assert first.digest == second.digest != third.digest


@pytest.mark.parametrize("kept", [1, 11, 40, 61, 70])
def test_a_batch_that_is_cut_off_ends_the_log(
    write: Callable[..., Path], tmp_path: Path, kept: int
) -> None:
    last = placed(of_client("6"), 1, 1)
    assert kept < len(last)
    write(placed(of_client("5"), 0, 1), last[:kept])
    (log,) = replica_logs("n1", tmp_path, "splitbrain")
    assert (log.end_offset, len(log.records)) == (1, 1)


def test_zeros_of_a_file_made_ahead_are_no_batches(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    write(placed(of_client("5"), 0, 1), bytes(4096))
    (log,) = replica_logs("n1", tmp_path, "splitbrain")
    assert log.end_offset == 1


def test_what_was_deleted_before_the_start_is_left_out(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    write(placed(of_client("5"), 4, 1), placed(of_client("6"), 5, 1), base=4)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nsplitbrain 0 5\n")
    (log,) = replica_logs("n1", tmp_path, "splitbrain")
    assert (log.start_offset, [each.value for each in log.records]) == (5, [6])


def test_other_topics_and_folders_on_their_way_out_are_passed_over(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    for name in ("splitbrain-10", "splitbrain-2", "splitbrain-x-0", "splitbrain-3.f00-delete"):
        write(placed(of_client("5"), 0, 1), partition=name)
    assert {log.log for log in replica_logs("n1", tmp_path, "splitbrain")} == {"2", "10"}
    (tmp_path / "splitbrain-4").mkdir()
    assert len(replica_logs("n1", tmp_path, "splitbrain")) == 3


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda batch: batch[:-1] + bytes([batch[-1] ^ 1]), "offset 0, is damaged"),
        (lambda batch: batch[:16] + b"\x01" + batch[17:], "is of version 1"),
        (lambda _: placed(built(b"v" * 500, compression=1), 0, 1), "is compressed"),
    ],
)
def test_a_batch_that_cannot_be_read_is_said_with_its_place(
    write: Callable[..., Path],
    tmp_path: Path,
    spoil: Callable[[bytes], bytes],
    problem: str,
) -> None:
    segment = write(spoil(placed(of_client("5"), 0, 1)))
    with pytest.raises(HarnessError, match=problem) as refused:
        replica_logs("n1", tmp_path, "splitbrain")
    assert refused.value.target == str(segment)


def test_a_checkpoint_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nsplitbrain\n")
    with pytest.raises(HarnessError, match="no topic, partition and offset"):
        replica_logs("n1", tmp_path, "splitbrain")


def test_the_system_shows_brokers_replicas_and_none_of_controllers(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "log").mkdir()
    write(placed(of_client("5"), 0, 1), partition="log/splitbrain-0")
    assert len(KafkaSystem().replica_logs(NodeName("n1"), tmp_path)) == 1
    assert KafkaSystem().replica_logs(NodeName("c1"), tmp_path) == ()
