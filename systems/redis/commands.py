"""From a workload's operations to Redis commands, and from replies back to results. Pure.

A read goes with ``ROLE`` in one transaction, so that the answer and the node's claim to be the
primary are of one moment: nobody promises that a replica's answer is fresh. A compare-and-set is a
script that declares that it may write, so a replica refuses it before it compares anything. Values
are JSON, so that numbers and null come back as they were.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.operations import Operation
from splitbrain.systems.redis.resp import ErrorReply, Reply, text

Command = tuple[str | bytes, ...]

#: Answer to ``ROLE`` of a node that takes writes.
PRIMARY_ROLE: Final = "master"

#: A set or a register, whichever the key holds; a register that was never written is nil.
_READ_SCRIPT: Final = """#!lua flags=no-writes
if redis.call('TYPE', KEYS[1]).ok == 'set' then return redis.call('SMEMBERS', KEYS[1]) end
return redis.call('GET', KEYS[1])"""

#: Without ``no-writes`` a replica, and a primary that lacks replicas, refuse it as a whole.
_CAS_SCRIPT: Final = """#!lua
local present = redis.call('GET', KEYS[1]) or 'null'
if present ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1"""


class UnexpectedReplyError(Exception):
    """A reply that is no error and no result of the command."""


def _read(key: str, _value: Any) -> tuple[Command, ...]:
    return (("MULTI",), ("ROLE",), ("EVAL", _READ_SCRIPT, "1", key), ("EXEC",))


def _write(key: str, value: Any) -> tuple[Command, ...]:
    return (("SET", key, _encoded(value)),)


def _cas(key: str, value: Any) -> tuple[Command, ...]:
    expected, new = value
    return (("EVAL", _CAS_SCRIPT, "1", key, _encoded(expected), _encoded(new)),)


def _enqueue(key: str, value: Any) -> tuple[Command, ...]:
    return (("RPUSH", key, _encoded(value)),)


def _dequeue(key: str, _value: Any) -> tuple[Command, ...]:
    return (("LPOP", key),)


def _add(key: str, value: Any) -> tuple[Command, ...]:
    return (("SADD", key, _encoded(value)),)


_COMMANDS: Final[dict[str, Callable[[str, Any], tuple[Command, ...]]]] = {
    "read": _read,
    "write": _write,
    "cas": _cas,
    "add": _add,
    "enqueue": _enqueue,
    "dequeue": _dequeue,
}


def only_reads(operation: Operation) -> bool:
    """Whether its commands change nothing."""
    return _COMMANDS[operation.f] is _read


def is_known(operation: Operation) -> bool:
    """Whether there are commands for this kind of operation."""
    return operation.f in _COMMANDS


def commands(operation: Operation) -> tuple[Command, ...]:
    """Return the commands of an operation of a known kind, sent in one piece."""
    return _COMMANDS[operation.f](operation.key or "", operation.value)


def error_of(replies: Sequence[Reply]) -> ErrorReply | None:
    """The error that tells most: of a command that was refused, or inside of a transaction."""
    for reply in replies:
        if isinstance(reply, ErrorReply):
            return reply
        if isinstance(reply, list):
            found = error_of(reply)
            if found is not None:
                return found
    return None


def role_of(reply: Reply) -> str:
    """``master`` or ``slave`` of a reply to ``ROLE``; empty where it is none."""
    return text(reply[0]) if isinstance(reply, list) and reply else ""


def read_by_primary(replies: Sequence[Reply]) -> bool:
    """Whether the node that answered a read claimed to be the primary at that moment."""
    transaction = replies[-1]
    return (
        isinstance(transaction, list)
        and bool(transaction)
        and (role_of(transaction[0]) == PRIMARY_ROLE)
    )


def result(operation: Operation, replies: Sequence[Reply]) -> Any:
    """Return the completed value as ``contracts.operations`` has it; ``replies`` hold no error.

    Raises:
        UnexpectedReplyError: the reply is none of this operation.
    """
    last = replies[-1]
    match operation.f, last:
        case "read", [_, value]:
            return _read_value(value)
        case "write", "OK":
            return operation.value
        case "cas", 0 | 1:
            expected, new = operation.value
            return [expected, new, bool(last)]
        case "add" | "enqueue", int():
            return operation.value
        case "dequeue", None:
            return None
        case "dequeue", bytes():
            return _decoded(last)
        case _:
            raise UnexpectedReplyError(f"{operation.f} was answered with {last!r}")


def _read_value(value: Reply) -> Any:
    match value:
        case None:
            return None
        case bytes():
            return _decoded(value)
        case list():
            return sorted((_decoded(item) for item in value), key=_order)
        case _:
            raise UnexpectedReplyError(f"a value cannot be {value!r}")


def _order(element: Any) -> tuple[str, Any]:
    """Elements of one kind in their own order; a set has none, people like one."""
    if isinstance(element, int | float):
        return "", element
    return type(element).__name__, str(element)


def _encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _decoded(raw: Reply) -> Any:
    if not isinstance(raw, bytes):
        raise UnexpectedReplyError(f"a value cannot be {raw!r}")
    try:
        return msgspec.json.decode(raw)
    except UNREADABLE as error:
        raise UnexpectedReplyError(f"{raw[:40]!r} was never written by a client") from error
