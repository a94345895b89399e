"""Disk faults of one simulated machine; implements ``SimulatedDisk``.

The disk itself notes every fault that strikes, which explains that a node stops: that is what one
that cannot trust its disk must do. Must never decide whether a fault is within the promise: the
planner asks first.
"""

import errno
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from splitbrain.contracts.errors import CapabilityError
from splitbrain.contracts.random_source import RandomSource
from splitbrain.nodes.storage import layout
from splitbrain.nodes.storage.durable_mark import STATEMENT_BYTES
from splitbrain.nodes.wire.batches import HEADER_BYTES, peek_batch
from splitbrain.simulation.disk.file_system import SECTOR_BYTES, DiskSnapshot
from splitbrain.simulation.kraft.host import Host

#: Files that rot, by the fault's name.
_SUFFIXES: Final = {
    "log": (layout.SEGMENT_SUFFIX,),
    "state": (layout.QUORUM_STATE,),
    "checkpoint": (layout.EPOCH_CHECKPOINT,),
    "mark": (layout.DURABLE_LENGTH,),
    "identity": (layout.META_PROPERTIES, layout.VOTERS),
}
#: Chance that rot in a log is aimed at the start of a batch: bytes of records are many more.
_HEADER_CHANCE: Final = 0.6
#: Low bytes of the fields before those that a batch's checksum covers: base offset, length, epoch.
#: Twice the one that makes nothing else of the batch unreadable.
_LAST_BYTES: Final = (7, 11, 15, 15)
#: Bits of such a byte that change a little: what comes of it may still make sense.
_SMALL_BITS: Final = 3


class DiskFaults:
    """Faults of one host's disk."""

    def __init__(
        self, host: Host, harmed: Callable[[Host, str], None], stream: Callable[[int], RandomSource]
    ) -> None:
        """``harmed`` is told of bytes that change; ``stream`` makes a random source of a draw."""
        self._host = host
        self._harmed = harmed
        self._stream = stream
        self.files = DataFiles(host, harmed)
        self._snapshot: DiskSnapshot | None = None
        #: Calls that had failed when the last fault of calls began.
        self._failed_before = 0

    def slow_down(self, factor: int) -> str:
        """Jobs take so many times as long; 1 heals."""
        self._host.disk_speed.slow_down(factor)
        return f"jobs of the disk take {factor} times as long"

    def fill(self, spare_bytes: int) -> str:
        """No more than so many bytes fit from now on; negative heals."""
        disk = self._host.disk
        if spare_bytes < 0:
            disk.capacity_bytes = None
            return "there is room again"
        disk.capacity_bytes = disk.used_bytes + spare_bytes
        return f"{spare_bytes} bytes are left"

    def fail_calls(self, action: str, count: int | None) -> str:
        """Return the next calls fail, once each or all of them.

        Reads are those of the log; what a failed sync should have written is forgotten.
        """
        self._failed_before = self._failed_count()
        if action == "read":
            self._host.disk.fail_next(action, errno.EIO, count, layout.SEGMENT_SUFFIX)
            return "reads of the log fail"
        self._host.disk.fail_next(action, errno.EIO, count)
        return f"every {action} fails" if count is None else f"the next {count} {action}s fail"

    def mend(self) -> str:
        """Every call succeeds again, and the disk is large enough."""
        self._host.disk.clear_faults()
        return f"calls succeed again, {self._failed_count() - self._failed_before} had failed"

    def _failed_count(self) -> int:
        return sum(note.kind.endswith("-failed") for note in self._host.disk.faults_done)

    def rot(self, draw: int, what: str) -> str | None:
        """Flip bits of one flushed byte."""
        host = self._host
        stream = self._stream(draw)
        choice = host.disk.rot_choices(stream, *_SUFFIXES[what])
        if choice is None:
            return None
        self._harmed(host, "bytes rotted")
        path, position, mask = choice
        if what == "log" and stream.random() < _HEADER_CHANCE:
            position = self._in_the_header(path, position, stream)
            mask = 1 << int(stream.random() * _SMALL_BITS)
        elif what == "mark":
            # The rest of its sector says nothing.
            position = position // SECTOR_BYTES * SECTOR_BYTES + position % STATEMENT_BYTES
        host.disk.rot(path, position, mask)
        self._harmed(host, "bytes rotted")
        return f"byte {position} of {path.name} changed by {mask:#04x}"

    def _in_the_header(self, path: Path, position: int, stream: RandomSource) -> int:
        """The last byte of a field of the same batch, if it is flushed; else the position."""
        disk = self._host.disk
        content = disk.durable_content(path) or b""
        start = 0
        while len(content) - start >= HEADER_BYTES:
            size_bytes = peek_batch(content, start)[2]
            if size_bytes < HEADER_BYTES or start + size_bytes > position:
                break
            start += size_bytes
        aimed = start + _LAST_BYTES[int(stream.random() * len(_LAST_BYTES))]
        return aimed if disk.durable_equals(path, aimed, aimed + 1) else position

    def remember(self) -> None:
        """Note what the disk holds."""
        self._snapshot = self._host.disk.snapshot()
        self.files.keep()

    def roll_back(self) -> str | None:
        """Put it back to what was noted; only a machine that is down."""
        if self._snapshot is None or self._host.is_up:
            return None
        self._host.disk.restore(self._snapshot)
        self._harmed(self._host, "its disk was put back")
        return "the disk is as it was earlier"

    def wipe(self) -> str:
        """Empty it; only a machine that is down."""
        if self._host.is_up:
            return "nothing: the machine is up"
        self._host.disk.wipe()
        self._host.has_forgotten |= self._host.incarnation >= 0
        return "the disk is empty"


class DataFiles:
    """Durable files of a machine's data folder, by their path in it; a ``DataFiles``.

    Bytes that are written so have rotted, and a file that is put back was restored: the disk's past
    has both, which explains what its node does about it. Only for a machine that is down.
    """

    def __init__(self, host: Host, harmed: Callable[[Host, str], None]) -> None:
        """``harmed`` is told of bytes that change."""
        self._host = host
        self._harmed = harmed
        self._kept: dict[str, bytes] = {}

    def keep(self) -> None:
        """Copy them as they are durable now."""
        self._kept = self._contents()

    def sizes(self) -> Mapping[str, int]:
        """Bytes of each file there is now."""
        return {file: len(content) for file, content in self._contents().items()}

    def kept(self) -> Mapping[str, int]:
        """Bytes of each file that was kept and is there still."""
        there = self._contents()
        return {file: len(content) for file, content in self._kept.items() if file in there}

    def read(self, file: str, offset: int, length: int) -> bytes:
        """Bytes of a file, from the disk and not from memory."""
        return self._contents()[file][offset : offset + length]

    def write(self, file: str, offset: int, content: bytes) -> None:
        """Put bytes in the place of others."""
        before = self.read(file, offset, len(content))
        self._harmed(self._host, "bytes rotted")
        for place, (old, new) in enumerate(zip(before, content, strict=True)):
            if old != new:
                self._host.disk.rot(self._path(file), offset + place, old ^ new)
        self._harmed(self._host, "bytes rotted")

    def truncate(self, file: str, size: int) -> None:
        """No simulated disk loses bytes but by a crash.

        Raises:
            CapabilityError: always.
        """
        raise CapabilityError(
            f"cut {file} off at byte {size}",
            "runtime simulated",
            "its disks lose bytes by crashes alone",
            "Choose another fault, or another --runtime.",
        )

    def difference(self, file: str) -> int | None:
        """First byte in which a file differs from its kept copy; None where they are equal."""
        kept, now = self._kept[file], self._contents()[file]
        if kept == now:
            return None
        pairs = zip(kept, now, strict=False)
        shorter = min(len(kept), len(now))
        return next((place for place, (old, new) in enumerate(pairs) if old != new), shorter)

    def exchange(self, file: str) -> None:
        """Let a file be as it was kept, and keep what it was."""
        now = self._contents()[file]
        self._host.disk.put(self._path(file), self._kept[file])
        self._kept[file] = now
        self._harmed(self._host, "its disk was put back")

    def _path(self, file: str) -> Path:
        return self._host.folder / file

    def _contents(self) -> dict[str, bytes]:
        folder = f"{self._host.folder}/"
        return {
            path.removeprefix(folder): content
            for path, content in self._host.disk.snapshot().files
            if path.startswith(folder)
        }
