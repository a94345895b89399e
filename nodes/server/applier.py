"""Feeds committed records to the state machine, in the order of the log.

Must never apply a record above the high watermark, nor one twice.
"""

from collections.abc import Callable

from nodes.quorum.identifiers import Offset
from nodes.registers.machine import Applied, RegisterMachine
from nodes.server.disk import Disk

#: Told of each record: its offset, its epoch, what it did (None for a control record).
Listener = Callable[[int, int, Applied | None], None]


class Applier:
    """Applies what is committed to one machine."""

    def __init__(self, disk: Disk, machine: RegisterMachine, start_offset: Offset) -> None:
        """An applier that has applied nothing; the log starts at ``start_offset``."""
        self._disk = disk
        self.machine = machine
        machine.skip(start_offset)

    def apply_up_to(self, offset: Offset, listener: Listener) -> None:
        """Apply every record below ``offset`` that is not applied yet.

        Raises:
            StorageError: the log cannot be read.
            UnknownCommandError: a record holds no command of this build.
        """
        machine = self.machine
        for batch in self._disk.batches(Offset(machine.end_offset), offset):
            for record in batch.records:
                if record.offset < machine.end_offset:
                    continue
                result: Applied | None = None
                if batch.is_control:
                    machine.skip(record.offset + 1)
                else:
                    result = machine.apply(record.offset, batch.epoch, record.value or b"")
                listener(record.offset, batch.epoch, result)
