"""Holds of the faults in force on nodes and links, so that several may be in force at once.

A node that two faults hold down comes back when both are healed, a link that two faults cut opens
with the second heal, and of two shapes the one that is left is in force again. Says which part of
an act is to be done; must never act. Entered by one thread at a time.

Other faults may also keep from being seen what one is looked at for: that is left out, and it is
said; it is no failure of a heal, and no proof of a bite.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

import msgspec

from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.nemesis import expectations
from splitbrain.nemesis.acts import Act, Held, Kill, Place, ShapeLinks, Terminate, at, places
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

#: States that only a process that exists can be put in.
_OF_PROCESSES: tuple[Held, ...] = ("paused", "cpu", "memory")
#: A process that is held so does not run.
_STOPPING: tuple[Held, ...] = ("down", "paused")
#: States of degree, which the holder that is left puts back to what it asked for.
_OF_DEGREE: tuple[Held, ...] = ("shape", "cpu", "memory", "slow", "clock")


class Holds:
    """Holders by kind of hold and node or link."""

    def __init__(self) -> None:
        #: Fault to its latest holding act, in the order in which they took hold.
        self._held: dict[tuple[Held, Place], dict[int, Act]] = {}
        self._changes = 0

    def admit(self, fault: int, act: Act, ended: Collection[NodeName] = ()) -> tuple[Act, ...]:
        """Return the acts to be done for an act of a fault, given what the other faults hold.

        It holds from now on; what it lets go it holds until it is ``done``.

        ``ended``: nodes that have ended by themselves.
        """
        self._changes += 1
        if act.holds is not None:
            return self._take(fault, act, act.holds, ended)
        if act.releases is not None:
            return self._release(fault, act, act.releases)
        return (act,)

    def done(self, fault: int, act: Act) -> None:
        """An act that was admitted is done."""
        if act.releases is None:
            return
        for place in places(act):
            key = (act.releases, place)
            holders = self._held.get(key, {})
            holders.pop(fault, None)
            if not holders:
                self._held.pop(key, None)

    def changes(self) -> int:
        """Return a number that grows with every act of any fault, as it is admitted."""
        return self._changes

    def is_down(self, node: NodeName, *, but: int | None = None) -> bool:
        """Whether a fault holds the node down, one of them apart."""
        return self._is_held("down", node, but)

    def disturbs(
        self, fault: int, expectation: expectations.Expectation, *, is_healed: bool
    ) -> bool:
        """Whether other faults in force hide what is expected, or keep it from meaning anything."""
        match expectation:
            case expectations.LinkIs(link, True) | expectations.LinkDelivers(link, True):
                return self._is_bad(link, fault)
            case expectations.LinkShaped(link, None):
                return self._is_held("shape", link, fault)
            case expectations.LinkShaped(link, shape):
                # The last to come has the one that is in force.
                last = list(self._held.get(("shape", link), {}).values())[-1:]
                return any(isinstance(act, ShapeLinks) and act.shape != shape for act in last)
            case expectations.LinkBehaves(link):
                return self._is_bad(link, fault)
            case expectations.PeersFlow(node):
                return any(key[1] == node or _touches(key[1], node) for key in self._by(fault))
            case expectations.PeersStall(node):
                return self._is_held("down", node, fault)
            case expectations.NodeIs(node, "running") if not is_healed:
                # A step of the fault has let it go, and others have not.
                return any(self._is_held(held, node, fault) for held in _STOPPING)
            case _:
                node = getattr(expectation, "node", None)
                return is_healed and any(key[1] == node for key in self._by(fault))

    def others(self, fault: int) -> tuple[int, ...]:
        """Other faults that hold something, sorted."""
        return tuple(
            sorted({holder for holders in self._held.values() for holder in holders} - {fault})
        )

    def clear(self) -> None:
        """Everything was healed at once."""
        self._held.clear()

    def _take(
        self, fault: int, act: Act, held: Held, ended: Collection[NodeName]
    ) -> tuple[Act, ...]:
        for place in places(act):
            holders = self._held.setdefault((held, place), {})
            holders.pop(fault, None)
            holders[fault] = act
        kept = list(places(act))
        if isinstance(act, Kill | Terminate):
            kept = [node for node in kept if node not in ended]
        # A process that is not there can be neither frozen nor asked to end.
        if held in _OF_PROCESSES or isinstance(act, Terminate):
            kept = [node for node in kept if not self._is_held("down", node, fault)]
        return _part(act, kept)

    def _release(self, fault: int, act: Act, held: Held) -> tuple[Act, ...]:
        free: list[Place] = []
        again: list[Act] = []
        for place in places(act):
            holders = self._held.get((held, place), {})
            others = [act for holder, act in holders.items() if holder != fault]
            if others:
                # The last request of those that are left is in force again.
                again.append(at(others[-1], (place,)))
            else:
                free.append(place)
        # Limits outlive the process: a node that is started later must not come back with one.
        if held == "paused":
            free = [place for place in free if not self._is_held("down", place, None)]
        return (*_part(act, free), *(again if held in _OF_DEGREE else ()))

    def _is_held(self, held: Held, place: Place, but: int | None) -> bool:
        return any(fault != but for fault in self._held.get((held, place), {}))

    def _is_bad(self, link: Link, but: int) -> bool:
        """Whether another fault keeps packets, or answers, from this link."""
        back = Link(link.destination, link.source)
        kinds: tuple[Held, ...] = ("cut", "shape", "reset")
        states: tuple[Held, ...] = ("down", "paused", "cpu")
        return any(self._is_held(held, way, but) for held in kinds for way in (link, back)) or any(
            self._is_held(held, node, but)
            for held in states
            for node in (link.source, link.destination)
        )

    def _by(self, but: int) -> Iterable[tuple[Held, Place]]:
        """Holds of others."""
        return [
            key for key, holders in self._held.items() if any(holder != but for holder in holders)
        ]


def _touches(place: Place, node: NodeName) -> bool:
    return isinstance(place, Link) and node in (place.source, place.destination)


def _part(act: Act, kept: list[Place]) -> tuple[Act, ...]:
    if not kept:
        return ()
    return (at(act, kept),)


#: Further looks, where others act amid each.
_AGAIN: Final = 2
#: Expectations that only a process that runs can meet.
_SEEN_OF_PROCESSES: Final = (NodeIs, NodeAnswers, PeersFlow, ProcessorShare, MemoryFree, ClockIs)

#: Those of these nodes that have ended by themselves: nothing that is healed brings them back.
Ended = Callable[[Sequence[NodeName]], Doing[Collection[NodeName]]]


def undisturbed(
    holds: Holds, index: int, look: Look, *, ended: Ended | None = None
) -> Doing[Evidence]:
    """See what a look for the undisturbed of its expectations shows.

    ``ended`` asks for nodes that have ended; None: the look is to show a bite, and no heal.
    """
    is_healed = ended is not None
    away: dict[NodeName, None] = {}

    def of(those: Sequence[Expectation]) -> Doing[tuple[Expectation, ...]]:
        kept = [item for item in those if not holds.disturbs(index, item, is_healed=is_healed)]
        if ended is not None:
            nodes = dict.fromkeys(node for item in kept for node in _processes_of(item))
            gone = yield from ended(tuple(nodes))
            away.update(dict.fromkeys(sorted(gone)))
            kept = [
                item for item in kept if not any(process in gone for process in _processes_of(item))
            ]
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
    return (item.node,) if isinstance(item, _SEEN_OF_PROCESSES) else ()
