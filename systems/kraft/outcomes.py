"""The error table: what each answer, or its absence, says about an operation (design, section 4).

Certain is what was never sent or what the node refused before it appended anything. All else is
``info`` for an operation that changes something, ``fail`` for a pure read. Pure; must never call
anything definite because it is likely.
"""

from typing import Any, Final

from splitbrain.contracts.operations import Completion, Operation
from splitbrain.nodes.transport.client_protocol import AnswerOutcome, ClientAnswer, RequestKind

#: Request kind of the node for each operation kind of a workload.
REQUEST_KINDS: Final[dict[str, RequestKind]] = {
    "read": "read",
    "write": "write",
    "cas": "cas",
    "add": "add",
    "read-set": "read-set",
    "create": "create-topic",
    "delete": "delete-topic",
    "describe": "describe-topic",
    "view": "describe-topic",
}
#: Requests that change nothing: unanswered ones are ``fail``.
_READING_REQUESTS: Final[frozenset[RequestKind]] = frozenset({"read", "read-set", "describe-topic"})
#: Error class for each outcome that a node answers.
ERROR_CLASSES: Final[dict[AnswerOutcome, str]] = {
    "not-leader": "not-leader",
    "timeout": "node-timed-out",
    "unknown": "leadership-lost",
    "invalid-request": "invalid-request",
    "stopping": "stopping",
    "fenced": "fenced",
}
#: The operation left this process and no answer came, or the connection broke.
LOST: Final = "connection-lost"
TIMED_OUT: Final = "timed-out"
#: Nothing left this process.
NOT_SENT: Final = "not-sent"
#: No node that leads was found in time, and none appended anything.
NO_LEADER: Final = "no-leader"


def answered(operation: Operation, answer: ClientAnswer, node: str) -> Completion:
    """Return the operation's outcome by a node's answer."""
    if answer.outcome == "ok":
        position = None
        has_record = not _only_reads(operation) and not _was_refused(operation, answer)
        if has_record and answer.epoch is not None and answer.offset is not None:
            position = (answer.epoch, answer.offset)
        return Completion("ok", _result(operation, answer), None, position, node)
    error = ERROR_CLASSES[answer.outcome]
    if answer.definite:
        return certainly_not(error, node)
    return unanswered(operation, error, node)


def unanswered(operation: Operation, error: str, node: str) -> Completion:
    """The operation was sent, and what came of it is not known."""
    return Completion("fail" if _only_reads(operation) else "info", error=error, node=node)


def certainly_not(error: str, node: str | None) -> Completion:
    """Return the operation did not happen and never will."""
    return Completion("fail", error=error, node=node)


def may_go_on(operation: Operation, completion: Completion) -> bool:
    """Whether another node may be asked: it is certain that nothing changed, but not refused."""
    if completion.type != "fail":
        return False
    if _only_reads(operation):
        return completion.error != "invalid-request"
    return completion.error in {NOT_SENT, "not-leader", "stopping"}


def _only_reads(operation: Operation) -> bool:
    return REQUEST_KINDS[operation.f] in _READING_REQUESTS


def _was_refused(operation: Operation, answer: ClientAnswer) -> bool:
    """Whether a topic was there already, or was not there: nothing was written."""
    return operation.f in ("create", "delete") and not answer.result


def _result(operation: Operation, answer: ClientAnswer) -> Any:
    """Return the completed value as ``contracts.operations`` has it."""
    result = answer.result
    if operation.f == "view":
        return [result, answer.offset]
    if _only_reads(operation):
        return result
    if operation.f == "create":
        return [operation.value, bool(result)]
    if operation.f == "delete":
        return bool(result)
    if operation.f == "cas":
        expected, value = operation.value
        return [expected, value, bool(result)]
    return operation.value
