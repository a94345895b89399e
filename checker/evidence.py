"""Everything that checkers may look at, in one frozen record."""

from collections.abc import Callable

import msgspec

from splitbrain.checker.verdict import CheckResult
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.committed import CommittedLog
from splitbrain.contracts.fault import FaultEvent
from splitbrain.contracts.state_event import StateEvent
from splitbrain.history.functions import COMPARE_AND_SET, USUAL, Function, Functions, effect_of
from splitbrain.history.records import PairedOperation


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
    #: Effects of the workload's functions.
    functions: dict[str, Function] = msgspec.field(default_factory=lambda: dict(USUAL))


#: Judges one run.
Checker = Callable[[Evidence, Budget], CheckResult]


def acknowledged_change(operation: PairedOperation, functions: Functions) -> bool:
    """Whether the operation left a record in the log and its client was told so."""
    if operation.type != "ok":
        return False
    effect = effect_of(functions, operation.f, operation.argument, operation.result)
    return effect == "records"


def cas_succeeded(result: object) -> bool:
    """Whether ``[expected, new, succeeded]`` says so; an answer without a third part does."""
    refused = COMPARE_AND_SET.refused
    return refused is None or not refused.covers(result)


def describe_operation(operation: PairedOperation) -> str:
    """One operation in a few words, for sentences."""
    argument = "" if operation.argument is None else f" {operation.argument}"
    key = "" if operation.key is None else f" of key {operation.key}"
    return f"{operation.f}{argument}{key} (index {operation.index}, process {operation.process})"
