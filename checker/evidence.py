"""Everything that checkers may look at, in one frozen record."""

import msgspec

from contracts.committed import CommittedLog
from contracts.fault import FaultEvent
from contracts.state_event import StateEvent
from history.records import PairedOperation

#: Operation kinds that leave a record in the log when they are acknowledged.
LOGGED_FUNCTIONS = frozenset({"write", "cas", "add", "put", "append", "remove", "create", "delete"})

#: Of these the kinds whose answer may be that it was not done.
REFUSABLE_FUNCTIONS = frozenset({"cas", "create", "delete"})


class Evidence(msgspec.Struct, frozen=True):
    """What one run left behind; absent parts are empty."""

    #: In the order of their invocation.
    operations: tuple[PairedOperation, ...]
    #: Node to its stamped state events, in the node's own order.
    state_events: dict[str, tuple[StateEvent, ...]] = {}
    #: Node to its committed log at the end of the run.
    committed_logs: dict[str, CommittedLog] = {}
    #: Number of voters; 0 where it is not known.
    voters: int = 0
    #: Nodes that have logs and do not vote.
    observers: frozenset[str] = frozenset()
    #: Faults as they happened.
    faults: tuple[FaultEvent, ...] = ()
    #: Whether all faults were healed and all nodes reached one log end before the logs were taken.
    converged: bool = True
    #: Nodes each of which may hold what no other does, so that nothing is lost before each has
    #: answered a final read; empty where one answer speaks for all, or where no node is known.
    members: frozenset[str] = frozenset()


def acknowledged_change(operation: PairedOperation) -> bool:
    """Whether the operation changed something and its client was told so."""
    if operation.type != "ok" or operation.f not in LOGGED_FUNCTIONS:
        return False
    return not was_refused(operation.f, operation.result)


def was_refused(f: str, result: object) -> bool:
    """Whether the answer to a change says that it was not done: an observation, no change.

    A compare-and-set met another value, a create found what it was to make, a delete nothing.
    """
    if f == "create":
        return isinstance(result, (list, tuple)) and list(result)[1:] == [False]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if f == "delete":
        return result is False
    return f == "cas" and not cas_succeeded(result)


def cas_succeeded(result: object) -> bool:
    """Whether ``[expected, new, succeeded]`` says so; an answer without a third part does."""
    if not isinstance(result, (list, tuple)):
        return True
    parts: list[object] = [*result]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return len(parts) < 3 or bool(parts[2])


def describe_operation(operation: PairedOperation) -> str:
    """One operation in a few words, for sentences."""
    argument = "" if operation.argument is None else f" {operation.argument}"
    key = "" if operation.key is None else f" of key {operation.key}"
    return f"{operation.f}{argument}{key} (index {operation.index}, process {operation.process})"
