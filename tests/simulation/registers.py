"""The state machine of the simulated world: a plain dict, writes and compare-and-set."""

import msgspec

from tests.simulation.disk import Entry


class Command(msgspec.Struct, frozen=True):
    """What a log record says; ``expected`` is None for a plain write."""

    operation: int
    key: int
    value: int
    expected: int | None = None


_DECODER = msgspec.msgpack.Decoder(Command)
encode = msgspec.msgpack.Encoder().encode


class Registers:
    """Applies the committed log, in order, once."""

    def __init__(self) -> None:
        #: Offset of the next record to apply.
        self.applied = 0
        #: key -> (value, offset of the record that set it).
        self._values: dict[int, tuple[int, int]] = {}

    def apply(self, log: list[Entry], end_offset: int) -> None:
        for offset in range(self.applied, min(end_offset, len(log))):
            payload = log[offset].payload
            if payload is not None:
                command = _DECODER.decode(payload)
                current = self._values.get(command.key, (0, -1))[0]
                if command.expected in (None, current):
                    self._values[command.key] = (command.value, offset)
        self.applied = max(self.applied, end_offset)

    def read(self, key: int) -> tuple[int, int]:
        """Value and the offset that set it; (0, -1) for a register never written."""
        return self._values.get(key, (0, -1))
