"""Effects of the nemesis: all that a fault's machine asks of the world that it is carried out in.

``nemesis.fault_machine`` gives one effect at a time and goes on with its answer, which the effect
names; without one it is told ``None`` when the effect is done. An answer may come within the same
call, in no time at all, or much later. Times are whole microseconds of the driver's clock.
"""

from collections.abc import Generator, Mapping
from typing import Any, TypeVar

import msgspec

from splitbrain.contracts.fault import (
    ActualFault,
    Awaited,
    Fault,
    FaultEvent,
    FaultPhase,
    FaultTraits,
    Microseconds,
)
from splitbrain.contracts.names import NodeName
from splitbrain.nemesis.acts import Act
from splitbrain.nemesis.expectations import Expectation
from splitbrain.nemesis.promise import VoterReport

_Result = TypeVar("_Result")


class Wait(msgspec.Struct, frozen=True):
    """Let time pass until then, at most until the run is to end."""

    until_us: Microseconds


class StayInForce(msgspec.Struct, frozen=True):
    """Let the fault last until then, at most until the run is to end.

    Answer: whether something else than the time is to heal it now.
    """

    until_us: Microseconds


class AwaitHappening(msgspec.Struct, frozen=True):
    """Wait for a happening, counted from now on, at most until then or the end of the run.

    Answer: the node where the last of them was; None where it did not come.
    """

    when: Awaited
    until_us: Microseconds


class AwaitRecovery(msgspec.Struct, frozen=True):
    """Wait until no fault is in force and all nodes take part again, at most until then.

    Answer: None once they do; else what is missing, in words.
    """

    until_us: Microseconds


class AskView(msgspec.Struct, frozen=True):
    """Look who leads, and where the logs end. Answer: ``ClusterView`` (of ``nemesis.aim.Aim``)."""


class AskReports(msgspec.Struct, frozen=True):
    """Answer: ``Reports``; None where the nodes tell nothing."""


class Begin(msgspec.Struct, frozen=True):
    """Put on record what the fault became, and keep how things stand before it."""

    actual: ActualFault
    #: All that will be looked for.
    expectations: tuple[Expectation, ...]


class AskAcknowledged(msgspec.Struct, frozen=True):
    """Answer: ``Acknowledged``."""


class Record(msgspec.Struct, frozen=True):
    """Put a phase of the fault on record, stamped with the present time."""

    #: None before the target is settled.
    actual: ActualFault | None
    phase: FaultPhase
    evidence: str | None
    #: Of its kind, when it is invoked.
    traits: FaultTraits | None = None

    def event(self, fault: Fault, time: int) -> FaultEvent:
        """Return the line for the record."""
        actual = self.actual
        return FaultEvent(
            time=time,
            index=fault.index,
            kind=fault.kind,
            phase=self.phase,
            target=fault.target,
            nodes=() if actual is None else actual.nodes,
            links=() if actual is None else actual.links,
            leader=None if actual is None else actual.leader,
            evidence=self.evidence,
            traits=self.traits,
        )


class Do(msgspec.Struct, frozen=True):
    """Do what the other faults leave of an act, and let no other act be done meanwhile.

    The part is what ``Holds`` admits when its turn comes; ``Holds`` is told when it is done. Nodes
    whose process it ends may be down from its turn on. Answer: ``Done``.
    """

    act: Act


class Look(msgspec.Struct, frozen=True):
    """Look until all of them are seen. Answer: ``Evidence``."""

    expectations: tuple[Expectation, ...]
    #: When the acts before it were done.
    since_us: Microseconds
    patience_us: Microseconds
    #: Whether the end of the run ends it.
    may_be_cut_short: bool


class AwaitService(msgspec.Struct, frozen=True):
    """Wait until a client is served that asked after ``since_us``. Answer: ``Evidence``."""

    since_us: Microseconds
    patience_us: Microseconds


class AskExits(msgspec.Struct, frozen=True):
    """Answer: the exit code, where known, of each of them that has ended."""

    nodes: tuple[NodeName, ...]


class AreBack(msgspec.Struct, frozen=True):
    """The nodes may not be down any more: an exit from now on is the system's own doing."""

    nodes: tuple[NodeName, ...]


class TellExits(msgspec.Struct, frozen=True):
    """Tell once in a run of each node that has ended: that is the system's own doing."""

    exits: Mapping[NodeName, int | None]
    detail: str | None = None


Effect = (
    Wait | StayInForce | AwaitHappening | AwaitRecovery | AskView | AskReports | Begin
    | AskAcknowledged | Record | Do | Look | AwaitService | AskExits | AreBack | TellExits
)  # fmt: skip


class Present:
    """The moment at which a machine goes on, as its driver told it last."""

    def __init__(self) -> None:
        self.now_us: Microseconds = 0
        #: Whether the run is to end.
        self.is_ending = False


#: A part of a machine: gives effects, is told their answers, and comes to a result.
Doing = Generator[Effect, Any, _Result]


class Reports(msgspec.Struct, frozen=True):
    """Reports of the voters on their logs."""

    #: Those that told nothing are missing.
    voters: Mapping[NodeName, VoterReport]
    #: Looks at all nodes' files that are over; two more, and all is heard that was written before.
    looks: int


class Done(msgspec.Struct, frozen=True):
    """An act that was done."""

    #: Reports on it, a clause each.
    said: tuple[str, ...] = ()
    #: Nodes that it was to end and that had ended before, though no fault held them down, with
    #: their exit codes, where known.
    ended: Mapping[NodeName, int | None] = {}


class Acknowledged(msgspec.Struct, frozen=True):
    """Operations that clients were acknowledged so far."""

    total: int
    by_node: Mapping[str, int]


class Evidence(msgspec.Struct, frozen=True):
    """Result of a look."""

    #: Whether everything expected, and at least something, was seen in time.
    seen: bool
    sentence: str
    #: Whether nobody can look there at any of it.
    is_dark: bool = False
