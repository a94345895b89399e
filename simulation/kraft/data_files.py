"""The files of one simulated machine's data folder, as faults change them; a ``DataFiles``.

Bytes that are written so have rotted, and a file that is put back was restored: the disk's past has
both, which explains what its node does about it. Only for a machine that is down.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from splitbrain.contracts.errors import CapabilityError
from splitbrain.simulation.kraft.host import Host


class DataFiles:
    """Durable files, by their path below the data folder."""

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
