"""Whether a fault may strike now, beside the others and within the promise.

What may not is recorded as not applicable, with the reason. Safe for several threads.
"""

import threading
from collections.abc import Sequence

from contracts.fault import ActualFault, ScheduledFault
from contracts.names import NodeName
from harness.holds import Holds
from nemesis.fault_kind import FaultKind
from nemesis.fault_options import BEYOND_PROMISE
from nemesis.promise import reason_against


class FaultGate:
    """The faults of one run that are in force."""

    def __init__(self, holds: Holds, nodes: Sequence[NodeName]) -> None:
        self._holds = holds
        self._nodes = nodes
        self._lock = threading.Lock()
        self._inside: dict[int, tuple[FaultKind, ActualFault]] = {}
        #: Nodes that have forgotten what they had flushed; they stay so.
        self._forgot: set[NodeName] = set()

    def enter(self, kind: FaultKind, fault: ScheduledFault, actual: ActualFault) -> str | None:
        """Let the fault strike, or say why not; one that entered leaves by ``leave``."""
        with self._lock:
            reason = self._reason(kind, fault, actual)
            if reason is None:
                self._inside[fault.index] = (kind, actual)
                if kind.rule != "keeps":
                    self._forgot.update(actual.nodes)
            return reason

    def leave(self, index: int) -> None:
        """The fault is over."""
        with self._lock:
            self._inside.pop(index, None)

    def _reason(self, kind: FaultKind, fault: ScheduledFault, actual: ActualFault) -> str | None:
        if kind.needs_up and all(self._holds.is_down(node) for node in actual.nodes):
            return f"{', '.join(actual.nodes)} down already"
        for other_kind, other in self._inside.values():
            shared = [node for node in other.nodes if node in actual.nodes]
            if shared and kind.exclusive is not None and kind.exclusive == other_kind.exclusive:
                return f"another fault of the {kind.exclusive} of {', '.join(shared)} is in force"
        if fault.options.get(BEYOND_PROMISE):
            return None
        return reason_against(kind, actual, self._nodes, sorted(self._forgot))
