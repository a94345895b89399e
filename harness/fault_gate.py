"""Whether a fault may strike now, beside the others and within the promise.

What may not is recorded as not applicable, with the reason. One that may make a voter forget is
asked about twice: before it strikes, and when its nodes are down and nothing of theirs is changed
yet (``nemesis.promise`` says why). Safe for several threads.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Final

from contracts.fault import ActualFault, Fault
from contracts.names import NodeName
from harness.holds import Holds
from harness.state_watch import StateWatch
from harness.stop import NotYetError, Stop
from nemesis.fault_kind import FaultKind
from nemesis.fault_options import BEYOND_PROMISE
from nemesis.promise import VoterTold, demand_of, reason_against, reason_unmet

_LOOK_INTERVAL_S: Final = 0.05
_CATCH_UP_S: Final = 1.0
_NOBODY_TELLS: Final = (
    "nobody can tell whether it is within the promise: what the nodes tell is not heard"
)


class SparedError(Exception):
    """A fault must not go on: its nodes would forget what nobody else is known to hold.

    The text says why.
    """


class FaultGate:
    """The faults of one run that are in force."""

    def __init__(
        self,
        holds: Holds,
        nodes: Sequence[NodeName],
        watch: StateWatch | None,
        held_patience_s: float,
    ) -> None:
        """``watch``: what the nodes tell; None where they tell nothing."""
        self._holds = holds
        self._nodes = nodes
        self._watch = watch
        self._held_patience_s = held_patience_s
        self._lock = threading.Lock()
        self._inside: dict[int, tuple[FaultKind, ActualFault]] = {}
        #: Nodes that may have forgotten what they had flushed, by what; they stay so.
        self._forgot: dict[NodeName, set[int]] = {}

    def enter(self, kind: FaultKind, fault: Fault, actual: ActualFault) -> str | None:
        """Let the fault strike, or say why not; one that entered leaves by ``leave``."""
        with self._lock:
            reason = self._reason(kind, fault, actual)
            if reason is None:
                self._inside[fault.index] = (kind, actual)
                if kind.rule != "keeps":
                    for node in actual.nodes:
                        self._forgot.setdefault(node, set()).add(fault.index)
            return reason

    def before_forgetting(
        self, kind: FaultKind, fault: Fault, actual: ActualFault, stop: Stop
    ) -> None:
        """Ask whether the nodes of a fault, which are down, may forget.

        Waits a while for the others to hold what must be held. Nodes that are spared count as
        having forgotten nothing.

        Raises:
            SparedError: they must not.
        """
        if kind.rule == "keeps" or fault.options.get(BEYOND_PROMISE):
            return
        reason = self._reason_unmet(actual, stop)
        if reason is not None:
            with self._lock:
                for node in actual.nodes:
                    self._forgot[node].discard(fault.index)
            raise SparedError(reason)

    def _reason_unmet(self, actual: ActualFault, stop: Stop) -> str | None:
        watch = self._watch
        if watch is None:
            return _NOBODY_TELLS
        # The look that is under way may have passed a file already.
        wanted = watch.looks() + 2

        def heard() -> None:
            if watch.looks() < wanted:
                raise NotYetError(_NOBODY_TELLS)

        def met() -> None:
            with self._lock:
                forgetful = self._forgetful()
            reason = reason_unmet(demand, self._nodes, forgetful, watch.told())
            if reason is not None:
                raise NotYetError(reason)

        try:
            stop.retrying(_CATCH_UP_S, _LOOK_INTERVAL_S, NotYetError)(heard)
            demand = demand_of(self._nodes, actual.nodes, watch.told())
            stop.retrying(self._held_patience_s, _LOOK_INTERVAL_S, NotYetError)(met)
        except NotYetError as unmet:
            return str(unmet)
        return None

    def _forgetful(self) -> list[NodeName]:
        return sorted(node for node, faults in self._forgot.items() if faults)

    def leave(self, index: int) -> None:
        """The fault is over."""
        with self._lock:
            self._inside.pop(index, None)

    def _reason(self, kind: FaultKind, fault: Fault, actual: ActualFault) -> str | None:
        if kind.needs_up and all(self._holds.is_down(node) for node in actual.nodes):
            return f"{', '.join(actual.nodes)} down already"
        for other_kind, other in self._inside.values():
            shared = [node for node in other.nodes if node in actual.nodes]
            if shared and kind.exclusive is not None and kind.exclusive == other_kind.exclusive:
                return f"another fault of the {kind.exclusive} of {', '.join(shared)} is in force"
        if fault.options.get(BEYOND_PROMISE):
            return None
        told: Mapping[NodeName, VoterTold] = {} if self._watch is None else self._watch.told()
        return reason_against(kind, actual, self._nodes, self._forgetful(), told)
