"""Looks for what a fault lets be seen while others are in force. Sans-I/O.

What others keep from being seen is left out, and that is said; it is no failure of a heal, and no
proof of a bite. Must never call seen what nobody looked for.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.nemesis.effects import Doing, Evidence, Look
from splitbrain.nemesis.expectations import (
    ClockIs,
    Expectation,
    LinkIs,
    MemoryFree,
    NodeAnswers,
    NodeIs,
    PeersFlow,
    ProcessorShare,
)
from splitbrain.nemesis.holds import Holds

#: Further looks, where others act amid each.
_AGAIN: Final = 2
#: Expectations that only a process that runs can meet.
_OF_PROCESSES: Final = (NodeIs, NodeAnswers, PeersFlow, ProcessorShare, MemoryFree, ClockIs)

#: Which of these nodes have ended by themselves: nothing that is healed brings them back.
Ended = Callable[[Sequence[NodeName]], Doing[Collection[NodeName]]]


def undisturbed(
    holds: Holds, index: int, look: Look, *, ended: Ended | None = None
) -> Doing[Evidence]:
    """See what a look for the undisturbed of its expectations shows.

    Args:
        holds: what all faults hold.
        index: the fault whose expectations they are.
        look: for all of them.
        ended: asks for nodes that have ended; None: the look is to show a bite, and no heal.
    """
    is_healed = ended is not None
    away: dict[NodeName, None] = {}

    def of(those: Sequence[Expectation]) -> Doing[tuple[Expectation, ...]]:
        kept = [item for item in those if not holds.disturbs(index, item, is_healed=is_healed)]
        if ended is not None:
            nodes = dict.fromkeys(node for item in kept for node in _processes_of(item))
            gone = yield from ended(tuple(nodes))
            away.update(dict.fromkeys(sorted(gone)))
            kept = [item for item in kept if not any(one in gone for one in _processes_of(item))]
        return tuple(kept)

    def left_out() -> str:
        others = len(look.expectations) - len(wanted)
        words = f"; {others} not looked for beside other faults" if others and not away else ""
        return words + "".join(f"; {node} has ended by itself" for node in away)

    wanted = yield from of(look.expectations)
    for is_last in (*(False for _ in range(_AGAIN)), True):
        if not wanted:
            break
        before = holds.changes()
        seen: Evidence = yield msgspec.structs.replace(look, expectations=wanted)
        # Others have begun or ended meanwhile, and may have kept from being seen what is missing.
        still = wanted if seen.seen or is_last else (yield from of(wanted))
        if seen.seen or is_last or (holds.changes() == before and len(still) == len(wanted)):
            return msgspec.structs.replace(seen, sentence=seen.sentence + left_out())
        wanted = still
    return Evidence(is_healed, left_out().removeprefix("; ") or "nothing to be seen")


def _processes_of(item: Expectation) -> tuple[NodeName, ...]:
    """Nodes whose processes must run for it to be seen."""
    if isinstance(item, LinkIs):
        return (item.link.source, item.link.destination)
    return (item.node,) if isinstance(item, _OF_PROCESSES) else ()
