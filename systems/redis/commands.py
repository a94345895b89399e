"""From a workload's operations to Redis commands, and from replies back to results. Pure.

A read goes with ``ROLE`` in one transaction, so that the answer and the node's claim to be the
primary are of one moment: nobody promises that a replica's answer is fresh. A compare-and-set is a
script that declares that it may write, so a replica refuses it before it compares anything; so are
all operations on several places. Values are JSON, so that numbers and null come back as they were;
sums and texts that are appended to are Redis' own.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from splitbrain.contracts.bank import ACCOUNTS, BALANCE
from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.operations import Operation
from splitbrain.systems.cells import account, guarded
from splitbrain.systems.redis.resp import ErrorReply, Reply, text

Command = tuple[str | bytes, ...]

#: Time after which a lock that nobody gave back is free again.
LEASE_MS: Final = 2000
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


#: Gives back a lock only where it is held by the one that asks.
_RELEASE_SCRIPT: Final = """#!lua
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])"""

#: Tokens are counted for each lock, and never go back while nothing is lost.
_ACQUIRE_LEASE_SCRIPT: Final = """#!lua
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local token = redis.call('INCR', KEYS[2])
redis.call('SET', KEYS[1], token, 'PX', ARGV[1])
return token"""

_GUARDED_WRITE_SCRIPT: Final = """#!lua
if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[2]) or 0) then return 0 end
redis.call('SET', KEYS[2], ARGV[1])
redis.call('SET', KEYS[1], ARGV[2])
return 1"""

_TRANSFER_SCRIPT: Final = """#!lua
local amount, usual = tonumber(ARGV[1]), ARGV[2]
local given = tonumber(redis.call('GET', KEYS[1]) or usual)
local taken = tonumber(redis.call('GET', KEYS[2]) or usual)
if given < amount then return 0 end
redis.call('SET', KEYS[1], given - amount)
redis.call('SET', KEYS[2], taken + amount)
return 1"""

#: Answers the value of each part; an argument is empty where its part reads.
_TXN_SCRIPT: Final = """#!lua
local found = {}
for place, key in ipairs(KEYS) do
    if ARGV[place] ~= '' then redis.call('SET', key, ARGV[place]) end
    found[place] = redis.call('GET', key)
end
return found"""


class UnexpectedReplyError(Exception):
    """A reply that is no error and no result of the command."""


def _script(source: str, keys: Sequence[str], *arguments: str | bytes) -> Command:
    return ("EVAL", source, str(len(keys)), *keys, *arguments)


def _txn(key: str, value: Any) -> Command:
    names = [f"{key}/{name}" for _, name, _ in value]
    return _script(
        _TXN_SCRIPT, names, *(b"" if kind == "r" else _encoded(new) for kind, _, new in value)
    )


def _transfer(key: str, value: Any) -> Command:
    giver, taker, amount = value
    cells = [account(key, giver), account(key, taker)]
    return _script(_TRANSFER_SCRIPT, cells, str(amount), str(BALANCE))


class _Function(msgspec.Struct, frozen=True):
    """A function as a command, and its reply as a result."""

    #: From key and value.
    command: Callable[[str, Any], Command]
    #: From value and reply; UnexpectedReplyError: the reply is none of this command.
    result: Callable[[Any, Reply], Any]
    #: Any node may be asked.
    only_reads: bool = False


def only_reads(operation: Operation) -> bool:
    """Whether its commands change nothing, and any node may be asked."""
    return operation.f in _FUNCTIONS and _FUNCTIONS[operation.f].only_reads


def is_known(operation: Operation) -> bool:
    """Whether there are commands for this kind of operation."""
    return operation.f in _FUNCTIONS


def commands(operation: Operation) -> tuple[Command, ...]:
    """Return the commands of an operation of a known kind, sent in one piece."""
    command = _FUNCTIONS[operation.f].command(operation.key or "", operation.value)
    return (("MULTI",), ("ROLE",), command, ("EXEC",)) if only_reads(operation) else (command,)


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
    reply = replies[-1]
    if only_reads(operation):
        if not isinstance(reply, list) or len(reply) != 2:
            raise UnexpectedReplyError(f"{operation.f} was answered with {reply!r}")
        reply = reply[1]
    return _FUNCTIONS[operation.f].result(operation.value, reply)


def _when_ok(value: Any, reply: Reply) -> Any:
    if reply != "OK":
        raise _unexpected(reply)
    return value


def _when_counted(value: Any, reply: Reply) -> Any:
    _number(value, reply)
    return value


def _number(_value: Any, reply: Reply) -> int:
    if not isinstance(reply, int):
        raise _unexpected(reply)
    return reply


def _flag(_value: Any, reply: Reply) -> bool:
    if reply not in (0, 1):
        raise _unexpected(reply)
    return bool(reply)


def _with_flag(value: Any, reply: Reply) -> list[Any]:
    return [*value, _flag(value, reply)]


def _token(value: Any, reply: Reply) -> int | bool:
    return _number(value, reply) or False


def _was_free(_value: Any, reply: Reply) -> bool:
    if reply not in (None, "OK"):
        raise _unexpected(reply)
    return reply is not None


def _element(_value: Any, reply: Reply) -> Any:
    return None if reply is None else _decoded(reply)


def _text(_value: Any, reply: Reply) -> str | None:
    return None if reply is None else text(_bytes(reply))


def _content(value: Any, reply: Reply) -> Any:
    """A register's value, or the elements of a set."""
    if isinstance(reply, list):
        return sorted(map(_decoded, reply), key=_order)
    return _element(value, reply)


def _balances(_value: Any, reply: Reply) -> dict[str, Any]:
    found = _list(reply, len(ACCOUNTS))
    balances = (BALANCE if each is None else _decoded(each) for each in found)
    return dict(zip(ACCOUNTS, balances, strict=True))


def _parts(value: Any, reply: Reply) -> list[list[Any]]:
    found = [_element(None, each) for each in _list(reply, len(value))]
    return [[kind, name, each] for (kind, name, _), each in zip(value, found, strict=True)]


def _list(reply: Reply, length: int) -> list[Reply]:
    if not isinstance(reply, list) or len(reply) != length:
        raise _unexpected(reply)
    return reply


def _bytes(reply: Reply) -> bytes:
    if not isinstance(reply, bytes):
        raise _unexpected(reply)
    return reply


def _unexpected(reply: Reply) -> UnexpectedReplyError:
    return UnexpectedReplyError(f"an answer cannot be {reply!r}")


#: By the names that ``systems.workload_client`` gives functions.
_FUNCTIONS: Final[Mapping[str, _Function]] = {
    "read": _Function(lambda key, _: _script(_READ_SCRIPT, [key]), _content, only_reads=True),
    "write": _Function(lambda key, value: ("SET", key, _encoded(value)), _when_ok),
    "cas": _Function(
        lambda key, value: _script(_CAS_SCRIPT, [key], *map(_encoded, value)), _with_flag
    ),
    "add": _Function(lambda key, value: ("SADD", key, _encoded(value)), _when_counted),
    "enqueue": _Function(lambda key, value: ("RPUSH", key, _encoded(value)), _when_counted),
    "dequeue": _Function(lambda key, _: ("LPOP", key), _element),
    "add-and-get": _Function(lambda key, value: ("INCRBY", key, str(value)), _number),
    "generate": _Function(lambda key, _: ("INCR", key), _number),
    "get": _Function(lambda key, _: ("GET", key), _text, only_reads=True),
    "put": _Function(lambda key, value: ("SET", key, value), _when_ok),
    "append": _Function(lambda key, value: ("APPEND", key, value), _when_counted),
    "txn": _Function(_txn, _parts),
    "transfer": _Function(_transfer, _with_flag),
    "read-bank": _Function(
        lambda key, _: ("MGET", *(account(key, name) for name in ACCOUNTS)),
        _balances,
        only_reads=True,
    ),
    "acquire": _Function(lambda key, value: ("SET", key, _encoded(value), "NX"), _was_free),
    "acquire-lease": _Function(
        lambda key, _: _script(_ACQUIRE_LEASE_SCRIPT, [key, f"{key}/token"], str(LEASE_MS)), _token
    ),
    # The value is the holder, or the token of the lease.
    **dict.fromkeys(
        ("release", "release-lease"),
        _Function(lambda key, value: _script(_RELEASE_SCRIPT, [key], _encoded(value)), _flag),
    ),
    "write-guarded": _Function(
        lambda key, value: _script(
            _GUARDED_WRITE_SCRIPT, [guarded(key), f"{key}/accepted"], *map(_encoded, value)
        ),
        _with_flag,
    ),
    "read-guarded": _Function(
        lambda key, _: _script(_READ_SCRIPT, [guarded(key)]), _content, only_reads=True
    ),
}


def _order(element: Any) -> tuple[str, Any]:
    """Elements of one kind in their own order; a set has none, people like one."""
    if isinstance(element, int | float):
        return "", element
    return type(element).__name__, str(element)


def _encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _decoded(reply: Reply) -> Any:
    raw = _bytes(reply)
    try:
        return msgspec.json.decode(raw)
    except UNREADABLE as error:
        raise UnexpectedReplyError(f"{raw[:40]!r} was never written by a client") from error
