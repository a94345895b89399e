"""Looks for what a fault lets be seen while others are in force.

What others keep from being seen is left out, and that is said; it is no failure of a heal, and no
proof of a bite. Must never call seen what nobody looked for.
"""

from collections.abc import Callable, Sequence
from typing import Final

from contracts.names import NodeName
from harness.evidence import Evidence
from harness.holds import Holds
from nemesis.expectations import (
    ClockIs,
    Expectation,
    LinkIs,
    MemoryFree,
    NodeAnswers,
    NodeIs,
    PeersFlow,
    ProcessorShare,
)

#: Further looks, where others act amid each.
_AGAIN: Final = 2
#: Expectations that only a process that runs can meet.
_OF_PROCESSES: Final = (NodeIs, NodeAnswers, PeersFlow, ProcessorShare, MemoryFree, ClockIs)


def undisturbed(
    holds: Holds,
    index: int,
    expectations: Sequence[Expectation],
    look: Callable[[Sequence[Expectation]], Evidence],
    *,
    is_healed: bool,
    has_ended: Callable[[NodeName], bool] = lambda _node: False,
) -> Evidence:
    """What a look for the undisturbed of these expectations shows.

    Args:
        holds: what all faults hold.
        index: the fault whose expectations they are.
        expectations: all of them.
        look: waits for some of them.
        is_healed: whether they are to show a heal.
        has_ended: whether a node has ended by itself: nothing that is healed brings it back.
    """
    ended: dict[NodeName, None] = {}

    def of(those: Sequence[Expectation]) -> list[Expectation]:
        kept = [item for item in those if not holds.disturbs(index, item, is_healed=is_healed)]
        gone = {node for item in kept for node in _processes_of(item) if has_ended(node)}
        ended.update(dict.fromkeys(sorted(gone)))
        return [item for item in kept if gone.isdisjoint(_processes_of(item))]

    def left_out() -> str:
        others = len(expectations) - len(wanted)
        words = f"; {others} not looked for beside other faults" if others and not ended else ""
        return words + "".join(f"; {node} has ended by itself" for node in ended)

    wanted = of(expectations)
    for is_last in (*(False for _ in range(_AGAIN)), True):
        if not wanted:
            break
        before = holds.changes()
        seen = look(wanted)
        # Others have begun or ended meanwhile, and may have kept from being seen what is missing.
        still = wanted if seen.seen or is_last else of(wanted)
        if seen.seen or is_last or (holds.changes() == before and len(still) == len(wanted)):
            return Evidence(seen.seen, seen.sentence + left_out())
        wanted = still
    return Evidence(is_healed, left_out().removeprefix("; ") or "nothing to be seen")


def _processes_of(item: Expectation) -> tuple[NodeName, ...]:
    """Nodes whose processes must run for it to be seen."""
    if isinstance(item, LinkIs):
        return (item.link.source, item.link.destination)
    return (item.node,) if isinstance(item, _OF_PROCESSES) else ()
