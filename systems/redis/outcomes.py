"""The error table: what each refusal, or silence, says about an operation (design, section 4).

Certain is what was never sent, and what the server refuses before it executes the command: Redis
checks these conditions first and changes nothing then. All else is ``info`` for an operation that
changes something, ``fail`` for a pure read. Must never call anything definite because it is likely.
Source: ``processCommand`` and the script preparation of Redis 7.0 as its documentation tells them;
each row was seen in the tests of this room or against a real server.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from splitbrain.contracts.operations import Completion, Operation
from splitbrain.systems.redis.commands import (
    UnexpectedReplyError,
    error_of,
    only_reads,
    read_by_primary,
    result,
)
from splitbrain.systems.redis.resp import ErrorReply, Reply


class ErrorRow(msgspec.Struct, frozen=True):
    """Meaning of one code."""

    #: Error class in the history.
    error: str
    #: Another node may be asked: this one is not the primary, or not able to serve yet.
    elsewhere: bool = False


#: Codes of refusals that come before anything is executed.
REFUSALS: Final[dict[str, ErrorRow]] = {
    "READONLY": ErrorRow("read-only-replica", elsewhere=True),
    "LOADING": ErrorRow("loading", elsewhere=True),
    "MASTERDOWN": ErrorRow("primary-link-down", elsewhere=True),
    "NOREPLICAS": ErrorRow("too-few-replicas"),
    "MISCONF": ErrorRow("persistence-failed"),
    "OOM": ErrorRow("out-of-memory"),
    "BUSY": ErrorRow("busy-with-a-script"),
    "NOAUTH": ErrorRow("not-allowed"),
    "NOPERM": ErrorRow("not-allowed"),
    "EXECABORT": ErrorRow("transaction-refused"),
    "WRONGTYPE": ErrorRow("wrong-type"),
}

#: The operation left this process and no answer came, or the connection broke.
LOST: Final = "connection-lost"
TIMED_OUT: Final = "timed-out"
#: The answer is none.
GARBLED: Final = "unexpected-answer"
#: The server says that something is wrong, in words that this table does not know.
UNCLASSIFIED: Final = "server-error"
#: Nothing left this process: no connection, or no sign of life on it.
NOT_SENT: Final = "not-sent"
#: The node does not claim to be the primary.
NOT_PRIMARY: Final = "not-primary"
#: No primary that serves was found in time, and nothing was executed.
NO_PRIMARY: Final = "no-primary"
#: The workload asks for something that there are no commands for.
UNKNOWN_OPERATION: Final = "unknown-operation"

#: Errors after which a client that looks for the primary may ask another node.
ELSEWHERE: Final = frozenset(
    {NOT_SENT, NOT_PRIMARY, *(row.error for row in REFUSALS.values() if row.elsewhere)}
)


def answered(
    operation: Operation, replies: Sequence[Reply], node: str, *, replica_reads: bool
) -> Completion:
    """Return the operation's outcome by a node's replies."""
    error = error_of(replies)
    if error is not None:
        return _refused(operation, error, node)
    if only_reads(operation) and not (replica_reads or read_by_primary(replies)):
        return certainly_not(NOT_PRIMARY, node)
    try:
        return Completion("ok", result(operation, replies), node=node)
    except UnexpectedReplyError:
        return unanswered(operation, GARBLED, node)


def _refused(operation: Operation, error: ErrorReply, node: str) -> Completion:
    row = REFUSALS.get(error.code)
    if row is None:
        return unanswered(operation, UNCLASSIFIED, node)
    return certainly_not(row.error, node)


def unanswered(operation: Operation, error: str, node: str) -> Completion:
    """The operation was sent, and what came of it is not known."""
    return Completion("fail" if only_reads(operation) else "info", error=error, node=node)


def certainly_not(error: str, node: str | None) -> Completion:
    """Return the operation did not happen and never will."""
    return Completion("fail", error=error, node=node)
