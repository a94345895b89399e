"""Whether a fault may strike now, beside the others and within the promise. Sans-I/O.

One that may make a voter forget is asked about twice: before it strikes, and when its nodes are
down and nothing of theirs is changed yet (``nemesis.promise`` says why). Its source is given:
what voters tell (``ReportedPromise``), or the ghost state of a world.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol

from splitbrain.contracts.fault import ActualFault, Fault, Microseconds
from splitbrain.contracts.names import NodeName
from splitbrain.nemesis.aim import Patience
from splitbrain.nemesis.effects import AskReports, Doing, Present, Reports, Wait
from splitbrain.nemesis.fault_kind import FaultKind
from splitbrain.nemesis.fault_options import BEYOND_PROMISE
from splitbrain.nemesis.holds import Holds
from splitbrain.nemesis.promise import demand_of, reason_against, reason_unknown, reason_unmet

_CATCH_UP_US: Final[Microseconds] = 1_000_000
_NOBODY_TELLS: Final = (
    "nobody can tell whether it is within the promise: what the nodes tell is not heard"
)


class SparedError(Exception):
    """A fault must not go on: its nodes would forget what nobody else is known to hold.

    The text says why.
    """


class Promise(Protocol):
    """Knows whether voters may forget what they had flushed."""

    def has_forgotten(self, node: NodeName) -> bool:
        """Whether a node may lack what it had flushed, after a fault that may have made it so."""
        ...

    def reason_before(self, actual: ActualFault) -> Doing[str | None]:
        """Why a fault must not strike, None where that is to be seen once its nodes are down."""
        ...

    def reason_once_down(
        self, actual: ActualFault, forgetful: Callable[[], Collection[NodeName]], present: Present
    ) -> Doing[str | None]:
        """Why the nodes of a fault, which are down, must not forget; None: they may.

        ``forgetful``: all that may have forgotten by now, the nodes of the fault included.
        """
        ...


class ReportedPromise:
    """The promise as far as the voters tell of it."""

    def __init__(self, voters: Sequence[NodeName], patience: Patience) -> None:
        """``patience``: for others to hold what must be held."""
        self._voters = voters
        self._patience = patience

    def has_forgotten(self, node: NodeName) -> bool:
        """See ``Promise``: what a node lacks it does not know itself."""
        return True

    def reason_before(self, actual: ActualFault) -> Doing[str | None]:
        """See ``Promise``: whether the voters tell what must be known."""
        reports: Reports | None = yield AskReports()
        return reason_unknown(self._voters, {} if reports is None else reports.voters)

    def reason_once_down(
        self, actual: ActualFault, forgetful: Callable[[], Collection[NodeName]], present: Present
    ) -> Doing[str | None]:
        """See ``Promise``; waits a while for the others to hold what must be held."""
        reports: Reports | None = yield AskReports()
        if reports is None:
            return _NOBODY_TELLS
        # The look that is under way may have passed a file already.
        wanted = reports.looks + 2
        until_us = present.now_us + _CATCH_UP_US
        while reports.looks < wanted:
            if present.is_ending or present.now_us >= until_us:
                return _NOBODY_TELLS
            reports = yield from self._reports_again(present)
        demand = demand_of(self._voters, actual.nodes, reports.voters)
        until_us = present.now_us + self._patience.held_us
        while True:
            reason = reason_unmet(demand, self._voters, forgetful(), reports.voters)
            if reason is None or present.is_ending or present.now_us >= until_us:
                return reason
            reports = yield from self._reports_again(present)

    def _reports_again(self, present: Present) -> Doing[Reports]:
        yield Wait(present.now_us + self._patience.look_again_us)
        reports: Reports = yield AskReports()
        return reports


class FaultGate:
    """The faults of one run that have been let in."""

    def __init__(
        self,
        holds: Holds,
        voters: Sequence[NodeName],
        promise: Promise,
        is_down: Callable[[NodeName], bool] | None = None,
    ) -> None:
        """No fault is in.

        ``is_down`` knows whether a node runs; None: one that no fault holds down does.
        """
        self._is_down = is_down or holds.is_down
        self._voters = voters
        self._promise = promise
        self._inside: dict[int, tuple[FaultKind, ActualFault]] = {}
        #: Faults that were to make a node forget what it had flushed.
        self._forgot: dict[NodeName, set[int]] = {}

    def enter(self, kind: FaultKind, fault: Fault, actual: ActualFault) -> Doing[str | None]:
        """Let the fault strike, or say why not; one that entered leaves by ``leave``."""
        unknown: str | None = None
        if _may_forget(kind, fault):
            unknown = yield from self._promise.reason_before(actual)
        # From here on in one go, so that of two faults that exclude each other one strikes.
        reason = self._reason(kind, fault, actual) or unknown
        if reason is None:
            self._inside[fault.index] = (kind, actual)
            if kind.rule != "keeps":
                for node in actual.nodes:
                    self._forgot.setdefault(node, set()).add(fault.index)
        return reason

    def before_forgetting(
        self, kind: FaultKind, fault: Fault, actual: ActualFault, present: Present
    ) -> Doing[None]:
        """Ask whether the nodes of a fault, which are down, may forget.

        Nodes that are spared count as having forgotten nothing.

        Raises:
            SparedError: they must not.
        """
        if not _may_forget(kind, fault):
            return
        reason = yield from self._promise.reason_once_down(actual, self._forgetful, present)
        if reason is not None:
            for node in actual.nodes:
                self._forgot[node].discard(fault.index)
            raise SparedError(reason)

    def leave(self, index: int) -> None:
        """Note that the fault is over."""
        self._inside.pop(index, None)

    def _forgetful(self) -> list[NodeName]:
        return sorted(node for node, faults in self._forgot.items() if self._may_lack(node, faults))

    def _may_lack(self, node: NodeName, faults: Collection[int]) -> bool:
        """Whether a node may have forgotten, or a fault in force may yet make it."""
        if any(index in self._inside for index in faults):
            return True
        return bool(faults) and self._promise.has_forgotten(node)

    def _reason(self, kind: FaultKind, fault: Fault, actual: ActualFault) -> str | None:
        if kind.needs_up and all(self._is_down(node) for node in actual.nodes):
            return f"{', '.join(actual.nodes)} down already"
        for other_kind, other in self._inside.values():
            shared = [node for node in other.nodes if node in actual.nodes]
            if shared and kind.exclusive is not None and kind.exclusive == other_kind.exclusive:
                return f"another fault of the {kind.exclusive} of {', '.join(shared)} is in force"
        if fault.options.get(BEYOND_PROMISE):
            return None
        return reason_against(kind, actual, self._voters, self._forgetful())


def _may_forget(kind: FaultKind, fault: Fault) -> bool:
    """Whether the promise has to be asked: the fault makes nodes forget, and must keep it."""
    return kind.rule != "keeps" and not fault.options.get(BEYOND_PROMISE)
