"""Value of every key at every committed offset: a second, independent state machine.

Shares the record format with the nodes and nothing else of their state machine. Values are compared
in their encoded form. Must never apply what is not committed.
"""

from bisect import bisect_left
from typing import Any, Final

import msgspec

from splitbrain.nodes.registers.commands import (
    Add,
    CompareAndSet,
    UnknownCommandError,
    Write,
    decode_command,
    encode_command,
)
from splitbrain.nodes.registers.machine import RegisterMachine
from splitbrain.nodes.server.host.state_machine import StateMachine
from splitbrain.nodes.server.registers.proposals import command_of
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest

_ENCODER: Final = msgspec.msgpack.Encoder(order="deterministic")
_NONE: Final = _ENCODER.encode(None)


class Versions:
    """Values of one register, or elements of one set, by the offset that brought them."""

    __slots__ = ("offsets", "values")

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.values: list[bytes] = []

    def add(self, offset: int, value: bytes) -> None:
        """Note that it has this value from this offset on."""
        self.offsets.append(offset)
        self.values.append(value)

    def count_below(self, end_offset: int) -> int:
        """How many values it has had below ``end_offset``."""
        return bisect_left(self.offsets, end_offset)


class Ledger:
    """Fed with every committed record in order."""

    def __init__(self) -> None:
        self._registers: dict[str, Versions] = {}
        self._sets: dict[str, Versions] = {}
        self._elements: dict[str, dict[bytes, None]] = {}
        #: Operation id -> offset of the last record that carries it.
        self.operations: dict[str, int] = {}
        #: The same the other way round.
        self.operation_at: dict[int, str] = {}
        #: Offset -> False for a compare-and-set that met another value.
        self.succeeded: dict[int, bool] = {}

    def apply(self, offset: int, payload: bytes) -> None:
        """Take a committed record; one that is no command changes nothing."""
        try:
            command = decode_command(payload)
        except UnknownCommandError:
            return
        succeeded = True
        match command:
            case Write(_, key, value):
                self._register(key).add(offset, _ENCODER.encode(value))
            case CompareAndSet(_, key, expected, value):
                register = self._register(key)
                present = register.values[-1] if register.values else _NONE
                succeeded = present == _ENCODER.encode(expected)
                if succeeded:
                    register.add(offset, _ENCODER.encode(value))
            case Add(_, key, element):
                encoded = _ENCODER.encode(element)
                known = self._elements.setdefault(key, {})
                if encoded not in known:
                    known[encoded] = None
                    self._sets.setdefault(key, Versions()).add(offset, encoded)
        self.succeeded[offset] = succeeded
        self.operations[command.operation] = offset
        self.operation_at[offset] = command.operation

    def known_keys(self) -> list[str]:
        """All that were ever written, in a fixed order."""
        return [*self._registers, *(key for key in self._sets if key not in self._registers)]

    def changed_at(self, key: str, end_offset: int) -> int:
        """One past the last offset below ``end_offset`` at which the key changed; 0: never."""
        last = 0
        for versions in (self._registers.get(key), self._sets.get(key)):
            if versions is not None:
                count = versions.count_below(end_offset)
                if count:
                    last = max(last, versions.offsets[count - 1] + 1)
        return last

    @staticmethod
    def make_machine() -> RegisterMachine:
        """Return a machine without a state, as nodes have it."""
        return RegisterMachine()

    def is_of(self, request: ClientRequest, offset: int, payload: bytes) -> bool:
        """Whether the committed record at this offset is the one that the request asks for."""
        return payload == encode_command(command_of(request))

    def needs_no_offset(self, request: ClientRequest, answer: ClientAnswer) -> bool:
        """Whether the answer may come without an offset: never, each leaves a record."""
        return False

    def answer(self, request: ClientRequest, offset: int) -> bytes | None:
        """Encoded answer that a request must get which is answered with this offset."""
        match request.kind:
            case "read":
                return self.read(request.key, offset)
            case "read-set":
                return self.read_set(request.key, offset)
            case "write" | "cas" | "add":
                return encoded(self.succeeded.get(offset))
            case _:
                return None

    def difference(self, state: StateMachine, end_offset: int) -> str | None:
        """Return the difference of a state from the records below ``end_offset``, in words."""
        assert isinstance(state, RegisterMachine)
        for key in self.known_keys():
            state_now = encoded(state.read(key)), encoded(state.read_set(key))
            if state_now != (self.read(key, end_offset), self.read_set(key, end_offset)):
                return f"another value of {key}"
        return None

    def read(self, key: str, end_offset: int) -> bytes:
        """Encoded answer to a read of the state after all below ``end_offset``."""
        register = self._registers.get(key)
        count = 0 if register is None else register.count_below(end_offset)
        if register is not None and count:
            return register.values[count - 1]
        elements = self._sets.get(key)
        if elements is not None and elements.count_below(end_offset):
            return self.read_set(key, end_offset)
        return _NONE

    def read_set(self, key: str, end_offset: int) -> bytes:
        """Encoded elements of a set after all below ``end_offset``, oldest first."""
        elements = self._sets.get(key)
        count = 0 if elements is None else elements.count_below(end_offset)
        values = elements.values[:count] if elements is not None else []
        return _ENCODER.encode([msgspec.Raw(value) for value in values])

    def _register(self, key: str) -> Versions:
        versions = self._registers.get(key)
        if versions is None:
            versions = self._registers[key] = Versions()
        return versions


def encoded(value: Any) -> bytes:
    """As the ledger keeps values."""
    return _ENCODER.encode(value)
