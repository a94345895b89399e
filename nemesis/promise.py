"""Whether a fault may make a node forget, as far as can be established from outside, pure.

Consensus survives any minority that is down; it does not survive voters that forget what they had
flushed and take part again. From outside only the number of nodes that forgot can be counted, so
that is what is bounded: a node counts as forgetful from the fault on, for the rest of the run. The
simulation asks its ghost state instead. Source: design, section 9.
"""

from collections.abc import Collection, Sequence

from contracts.fault import ActualFault
from contracts.names import NodeName
from nemesis.fault_kind import FaultKind


def reason_against(
    kind: FaultKind,
    fault: ActualFault,
    nodes: Sequence[NodeName],
    forgot: Collection[NodeName],
) -> str | None:
    """Why the fault must not strike, None if it may.

    Args:
        kind: of the fault.
        fault: as it was settled.
        nodes: all voters.
        forgot: those that have forgotten something in this run.
    """
    if kind.rule == "keeps":
        return None
    if kind.rule == "lies":
        return "beyond the promise: nobody can tell that a disk is older than it was"
    forgetful = [node for node in nodes if node in forgot or node in fault.nodes]
    if len(forgetful) > (len(nodes) - 1) // 2:
        return f"beyond the promise: {', '.join(forgetful)} would have forgotten, a majority"
    return None
