"""Evidence of one run, and members that nobody read at the end. Pure.

Where members answer from their own state, nothing is lost before each of them was read: an element
missing at one may stand at another, dead or alive. That never excuses a member that contradicts
itself. Source: issue 18, section 4.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from splitbrain.checker.verdict import CheckResult
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.committed import CommittedLog, RecordForm, ReplicaLog
from splitbrain.contracts.fault import FaultEvent
from splitbrain.contracts.member_digest import DigestAnswer
from splitbrain.contracts.state_event import Resigning, StateEvent
from splitbrain.contracts.system import AllowedAnomaly
from splitbrain.history.functions import COMPARE_AND_SET, USUAL, Function, Functions, effect_of
from splitbrain.history.records import PairedOperation


class Evidence(msgspec.Struct, frozen=True):
    """Record of everything that one run left behind; absent parts are empty."""

    #: In order of invocation.
    operations: Sequence[PairedOperation]
    #: State events by node, stamped, in the node's own order.
    state_events: dict[str, tuple[StateEvent, ...]] = {}
    #: Committed log at the end of the run, by node.
    committed_logs: dict[str, CommittedLog] = {}
    #: Replicas of partitioned logs at the end of the run, by log and node.
    replica_logs: Mapping[str, Mapping[str, ReplicaLog]] = {}
    #: Digests that running members told, in the order in which they were recorded.
    digests: tuple[DigestAnswer, ...] = ()
    #: 0 if unknown.
    voters: int = 0
    #: Nodes with logs but without vote.
    observers: frozenset[str] = frozenset()
    faults: tuple[FaultEvent, ...] = ()
    #: Whether all faults were healed and all nodes reached one log end before the dumps.
    converged: bool = True
    #: Nodes each of which may hold data of its own, so that nothing is lost before each answered a
    #: final read; empty where one answer speaks for all, or where no node is known.
    members: frozenset[str] = frozenset()
    #: Forms of records that look otherwise than the operations that left them, by their kinds.
    record_forms: dict[str, RecordForm] = {}
    functions: dict[str, Function] = msgspec.field(default_factory=lambda: dict(USUAL))
    #: Milliseconds that an observer may be silent before the leader takes it out of service; None
    #: where nobody promises that.
    session_ms: int | None = None
    #: Promise about leaders that were deposed; None where nobody promises anything.
    resigning: Resigning | None = None
    #: Anomalies that the system documents.
    allowed: tuple[AllowedAnomaly, ...] = ()


#: Judges one run.
Checker = Callable[[Evidence, Budget], CheckResult]


def acknowledged_change(operation: PairedOperation, functions: Functions) -> bool:
    """Return whether the operation left a record in the log and was acknowledged."""
    if operation.type != "ok":
        return False
    effect = effect_of(functions, operation.f, operation.argument, operation.result)
    return effect == "records"


def cas_succeeded(result: object) -> bool:
    """Return the success flag of ``[expected, new, succeeded]``; true without a third part."""
    refused = COMPARE_AND_SET.refused
    return refused is None or not refused.covers(result)


def describe_operation(operation: PairedOperation) -> str:
    """Return one operation in a few words, for sentences."""
    argument = "" if operation.argument is None else f" {operation.argument}"
    key = "" if operation.key is None else f" of key {operation.key}"
    return f"{operation.f}{argument}{key} (index {operation.index}, process {operation.process})"


def unread(members: Iterable[str], answers: Iterable[PairedOperation]) -> tuple[str, ...]:
    """Return the members that answered none of these operations at the end, sorted."""
    answered = {answer.node for answer in answers if answer.final and answer.type == "ok"}
    return tuple(sorted(set(members) - answered))


def wrong_for_good(
    reads: Sequence[PairedOperation], wrong: Collection[int]
) -> tuple[PairedOperation, ...]:
    """Return the wrong ones of the completed reads of one object that no right read follows.

    Empty where a final read is right: earlier wrong answers were then about data not there yet, or
    no longer. ``wrong`` are indexes.
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


def unread_reason(what: str, members: Collection[str]) -> str:
    """Return the sentence for ``unknown``; ``what`` is the subject with its verb."""
    was = "was" if len(members) == 1 else "were"
    return f"{what}, and {', '.join(sorted(members))} {was} not read at the end and may hold it."
