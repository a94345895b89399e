"""Redis, and what speaks its protocol: GET and SET, a script for compare-and-set, SADD for sets.

Reads are taken from whichever target is asked: a replica that clients are pointed to is held to
what clients are promised. Must never take an error for a refusal that is not known for one.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.operations import Operation
from splitbrain.systems.compose_file.drivers.driver import AskingDriver
from splitbrain.systems.redis.outcomes import GARBLED, REFUSALS, UNCLASSIFIED
from splitbrain.systems.redis.resp import (
    ErrorReply,
    ProtocolError,
    Reply,
    ReplyParser,
    encode_command,
)
from splitbrain.systems.servers import Refused, Unclear

_CHUNK_BYTES: Final = 65_536
#: Without the header of version 7, so that older servers take it too.
_CAS: Final = """if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1"""

_Command = tuple[str | bytes, ...]


class RedisDriver(AskingDriver):
    """Registers and sets in Redis; values are JSON."""

    name = "redis"
    workloads: Sequence[str] = ("register", "set")
    settings: Mapping[str, str] = {
        "user": "name for AUTH; by default none",
        "password": "for AUTH; by default REDIS_PASSWORD of the service's environment",
    }

    async def ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, operation: Operation, /
    ) -> Any:
        """Perform one operation; see ``ServerSystem.ask``."""
        commands = [*self._greeting(), self._command(operation)]
        writer.write(b"".join(map(encode_command, commands)))
        parser = ReplyParser()
        replies: list[Reply] = []
        while len(replies) < len(commands):
            data = await reader.read(_CHUNK_BYTES)
            if not data:
                raise EOFError
            try:
                replies += parser.feed(data)
            except ProtocolError as error:
                raise Unclear(GARBLED) from error
        reply = replies[-1]
        if isinstance(reply, ErrorReply):
            row = REFUSALS.get(reply.code)
            raise Unclear(UNCLASSIFIED) if row is None else Refused(row.error)
        return _value(operation, reply)

    def _greeting(self) -> list[_Command]:
        password = self.options.get("password", self.environment.get("REDIS_PASSWORD", ""))
        if not password:
            return []
        user = self.options.get("user")
        return [("AUTH", password) if user is None else ("AUTH", user, password)]

    def _command(self, operation: Operation) -> _Command:
        key, value = operation.key or "", operation.value
        match operation.f:
            case "read":
                return ("SMEMBERS" if self.workload == "set" else "GET", key)
            case "write":
                return ("SET", key, msgspec.json.encode(value))
            case "cas":
                expected, new = map(msgspec.json.encode, value)
                return ("EVAL", _CAS, "1", key, expected, new)
            case "add":
                return ("SADD", key, msgspec.json.encode(value))
            case other:
                raise Refused(f"no-{other}")


def _value(operation: Operation, reply: Reply) -> Any:
    try:
        match operation.f, reply:
            case "read", None:
                return None
            case "read", bytes():
                return msgspec.json.decode(reply)
            case "read", list():
                return sorted(msgspec.json.decode(bytes(item)) for item in reply)  # pyright: ignore[reportArgumentType]
            case ("write", "OK") | ("add", int()):
                return operation.value
            case "cas", 0 | 1:
                return [*operation.value, bool(reply)]
            case _:
                raise Unclear(GARBLED)
    except (*UNREADABLE, TypeError) as error:
        raise Unclear(GARBLED) from error
