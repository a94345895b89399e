"""When each fault of a run was in force, from the phases of ``faults.jsonl``; pure.

The one reading of these phases: checkers, judgement and report take a fault's times from here.
Only what was seen from outside counts. Must never tell of a fault that was not injected.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from splitbrain.contracts.fault import FaultEvent, FaultPhase, FaultTraits
from splitbrain.contracts.fault_traits import TRAITS_OF_OLD

#: End of a run of which nobody says when it ended, ns.
ENDLESS: Final = sys.maxsize

Phases = Mapping[FaultPhase, FaultEvent]


class FaultWindow(msgspec.Struct, frozen=True):
    """When a fault was in force, ns since the run's start."""

    index: int
    kind: str
    nodes: tuple[str, ...]
    #: When the runtime was asked to inject it.
    start: int
    #: When it was seen to be gone; for one that was never seen to be gone, the end of the run.
    end: int
    #: When it was seen to have bitten; None if it never was.
    seen: int | None
    healed: bool
    #: Its nodes were ended and not harmed, for the promise's sake: it counts as not applicable.
    spared: bool = False
    #: Symbolic.
    target: str = ""
    traits: FaultTraits = FaultTraits()
    #: By when the processes of its nodes had ended, as far as it was seen.
    ended: int | None = None

    @property
    def verified(self) -> bool:
        """Whether it was seen to have bitten."""
        return self.seen is not None

    @property
    def may_end_processes(self) -> bool:
        """Whether processes of its nodes end by it, or may."""
        return self.traits.ends_process is not None

    @property
    def name(self) -> str:
        """``fault 0 (partition:leader on n1)``."""
        on = f" on {', '.join(self.nodes)}" if self.nodes and self.target not in self.nodes else ""
        return f"fault {self.index} ({self.kind}:{self.target}{on})"

    def ends_life_begun(self, time: int) -> int | None:
        """By when it had ended what a process of its nodes began at a time; None: it did not.

        A course that ends processes in its later steps starts them again too: what begins while it
        lasts may belong to the next life.
        """
        if self.ended is None:
            return None
        begun_before = self.ended if self.traits.ends_process == "at-once" else self.start
        return self.ended if time < begun_before else None


def fault_windows(events: Iterable[FaultEvent], end_time: int = ENDLESS) -> list[FaultWindow]:
    """The windows of all faults that were injected, in the order of their start."""
    windows: list[FaultWindow] = []
    for index, story in by_fault(events).items():
        phases: Phases = {event.phase: event for event in story}
        if "invoked" not in phases:
            continue
        invoked, gone = phases["invoked"], gone_with(phases)
        windows.append(
            FaultWindow(
                index=index,
                kind=invoked.kind,
                nodes=nodes_hit(story),
                start=invoked.time,
                end=gone.time if gone else max(invoked.time, end_time),
                seen=phases["verified"].time if has_bitten(phases) else None,
                healed=gone is not None,
                spared="not-applicable" in phases,
                target=invoked.target,
                traits=traits_of(invoked),
                ended=_ended(phases),
            )
        )
    return sorted(windows, key=lambda window: (window.start, window.index))


def traits_of(invoked: FaultEvent) -> FaultTraits:
    """Traits of a fault's kind, as recorded, else as kinds of its name had them."""
    return invoked.traits or TRAITS_OF_OLD.get(invoked.kind, FaultTraits())


def by_fault(events: Iterable[FaultEvent]) -> dict[int, list[FaultEvent]]:
    """The events of each fault, by its index."""
    stories: dict[int, list[FaultEvent]] = {}
    for event in events:
        stories.setdefault(event.index, []).append(event)
    return stories


def nodes_hit(story: Sequence[FaultEvent]) -> tuple[str, ...]:
    """The nodes hit, as the latest phase that names any has them."""
    return next((tuple(map(str, event.nodes)) for event in reversed(story) if event.nodes), ())


def has_bitten(phases: Phases) -> bool:
    """Whether every step of the fault was seen, and not its first one alone."""
    return "verified" in phases and "not-bitten" not in phases


def gone_with(phases: Phases) -> FaultEvent | None:
    """The event with which the fault was seen to be gone."""
    return phases.get("removed") or phases.get("resumed")


def _ended(phases: Phases) -> int | None:
    """When the end of the processes was seen, or when they were to be started again after it."""
    tells = {"at-once": phases.get("verified"), "later": phases.get("healing")}
    event = tells.get(traits_of(phases["invoked"]).ends_process or "")
    return None if event is None or "verified" not in phases else event.time
