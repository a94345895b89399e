"""The state machine: registers with compare-and-set, and sets, fed by committed records. Pure.

Values are kept in their encoded form, so that comparing them has no surprises (1, 1.0 and true are
three values). Two machines that applied the same records are equal, digest included.
"""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from splitbrain.nodes.registers.commands import Add, CompareAndSet, Write, decode_command
from splitbrain.nodes.registers.snapshot import ImageLoader, RegisterImage, image_values
from splitbrain.nodes.wire.batches import RecordBatch

#: How many of the newest operation ids are remembered to recognise a repeated command.
REMEMBERED_OPERATIONS: Final = 10_000

_ENCODER: Final = msgspec.msgpack.Encoder(order="deterministic")
_NONE: Final = _ENCODER.encode(None)


class OutOfOrderError(Exception):
    """A record was offered whose offset is not above all applied ones."""


class Applied(msgspec.Struct, frozen=True):
    """Effect of applying one record."""

    #: False for a compare-and-set that met another value; True for everything else.
    succeeded: bool
    #: Offset of an earlier record with the same operation id, None if it is new. The command was
    #: applied again all the same: whoever retried must know what that means.
    repeats: int | None


class RegisterMachine:
    """Registers and sets as of one offset."""

    def __init__(self) -> None:
        self._registers: dict[str, bytes] = {}
        self._sets: dict[str, dict[bytes, None]] = {}
        self._operations: dict[str, int] = {}
        self._end_offset = 0
        self._digest: str | None = None

    @property
    def end_offset(self) -> int:
        """One past the last applied offset."""
        return self._end_offset

    def apply(self, offset: int, epoch: int, payload: bytes) -> Applied:
        """Apply one committed record; ``epoch`` is part of the story of an error only.

        Raises:
            OutOfOrderError: the offset was applied already; gaps are control records.
            UnknownCommandError: the payload is no command; nothing changed.
        """
        if offset < self._end_offset:
            raise OutOfOrderError(
                f"record at offset {offset}, epoch {epoch}, comes after {self._end_offset}"
            )
        command = decode_command(payload)
        succeeded = True
        match command:
            case Write(_, key, value):
                self._registers[key] = _ENCODER.encode(value)
            case CompareAndSet(_, key, expected, value):
                succeeded = self._registers.get(key, _NONE) == _ENCODER.encode(expected)
                if succeeded:
                    self._registers[key] = _ENCODER.encode(value)
            case Add(_, key, element):
                self._sets.setdefault(key, {})[_ENCODER.encode(element)] = None
        self._end_offset = offset + 1
        self._digest = None
        return Applied(succeeded, self._remember(command.operation, offset))

    def apply_batch(self, batch: RecordBatch, listener: Callable[[int, int, Any], None]) -> None:
        """Apply what is not applied of a committed batch; raises UnknownCommandError.

        ``listener`` is told of each: its offset, its epoch, and ``Applied`` or None.
        """
        for record in batch.records:
            if record.offset < self._end_offset:
                continue
            result: Applied | None = None
            if batch.is_control:
                self.skip(record.offset + 1)
            else:
                result = self.apply(record.offset, batch.epoch, record.value or b"")
            listener(record.offset, batch.epoch, result)

    def freeze(self) -> Callable[[], Iterator[bytes]]:
        """The state as it is now, as the records of a snapshot; costs a copy of the tables."""
        sets = {key: tuple(elements) for key, elements in self._sets.items()}
        image = RegisterImage(dict(self._registers), sets, dict(self._operations))
        return lambda: image_values(image)

    def begin_loading(self) -> ImageLoader:
        """Begin to take the state of a snapshot, beside the present one."""
        return ImageLoader(self.adopt)

    def adopt(self, image: RegisterImage, end_offset: int) -> None:
        """Be what a snapshot says: the state after all below ``end_offset``."""
        self._registers = image.registers
        self._sets = {key: dict.fromkeys(elements) for key, elements in image.sets.items()}
        self._operations = image.operations
        self._end_offset = end_offset
        self._digest = None

    def skip(self, end_offset: int) -> None:
        """Note that all up to ``end_offset`` is applied; the records there changed nothing."""
        self._end_offset = max(self._end_offset, end_offset)

    def read(self, key: str) -> Any:
        """Return the key's content: a register's value, else a set's elements, else None."""
        if key in self._sets and key not in self._registers:
            return self.read_set(key)
        return msgspec.msgpack.decode(self._registers.get(key, _NONE))

    def read_set(self, key: str) -> list[Any]:
        """Elements of a set in the order in which they were first added."""
        return [msgspec.msgpack.decode(element) for element in self._sets.get(key, ())]

    def digest(self) -> str:
        """32 hex digits that are equal for equal contents of all registers and sets.

        Costs one pass over the state, once per change.
        """
        if self._digest is None:
            registers = sorted(self._registers.items())
            sets = sorted((key, sorted(elements)) for key, elements in self._sets.items())
            content = _ENCODER.encode((registers, sets))
            self._digest = hashlib.blake2b(content, digest_size=16).hexdigest()
        return self._digest

    def _remember(self, operation: str, offset: int) -> int | None:
        earlier = self._operations.pop(operation, None)
        self._operations[operation] = offset
        if len(self._operations) > REMEMBERED_OPERATIONS:
            del self._operations[next(iter(self._operations))]
        return earlier
