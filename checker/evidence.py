"""Everything that checkers may look at, in one record; members that nobody read at the end. Pure.

Where members answer from what they have themselves, nothing is lost before each of them was read:
what is missing at one may stand at another. One that did not answer, dead or alive, may hold it.
That never excuses what a member that was read contradicts by itself. Source: issue 18, section 4.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec

from splitbrain.checker.verdict import CheckResult
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.committed import CommittedLog
from splitbrain.contracts.fault import FaultEvent
from splitbrain.contracts.state_event import StateEvent
from splitbrain.history.functions import COMPARE_AND_SET, USUAL, Function, Functions, effect_of
from splitbrain.history.records import PairedOperation


class Evidence(msgspec.Struct, frozen=True):
    """Everything that one run left behind; absent parts are empty."""

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


def unread(members: Iterable[str], answers: Iterable[PairedOperation]) -> tuple[str, ...]:
    """Members that answered none of these final operations, sorted.

    Args:
        members: see ``Evidence.members``; none where one answer speaks for all.
        answers: operations on one object that show what a member holds; those that are no final
            ones, and those without success, count for nothing.
    """
    answered = {answer.node for answer in answers if answer.final and answer.type == "ok"}
    return tuple(sorted(set(members) - answered))


def wrong_for_good(
    reads: Sequence[PairedOperation], wrong: Collection[int]
) -> tuple[PairedOperation, ...]:
    """Of the wrong reads of one object those after which no read is right.

    None where a final read is right: whatever was wrong before it was not there yet, or no longer.

    Args:
        reads: completed reads.
        wrong: indexes of those that show something else than they should.
    """
    right = [read for read in reads if read.index not in wrong]
    if any(read.final for read in right):
        return ()
    last_right = max((read.end for read in right if read.end is not None), default=None)
    return tuple(
        read
        for read in reads
        if read.index in wrong and (last_right is None or read.start > last_right)
    )


def told_unread(what: str, members: Collection[str]) -> str:
    """Why nothing can be said, one sentence; ``what`` is missing or wrong, with its verb."""
    was = "was" if len(members) == 1 else "were"
    return f"{what}, and {', '.join(sorted(members))} {was} not read at the end and may hold it."
