"""Which fault a moment on a node falls to: the one in force, else the nearest one. Pure.

Told by time and node alone: it says where to look, and proves no cause. Whoever acknowledged counts
first: a fault that hit that node comes before one that hit others. Faults that found no target are
left out. Must never give a moment to a fault that was not injected.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from splitbrain.contracts.fault import FaultEvent

When = Literal["during", "after", "before"]

#: The phases that end a fault's window, the first of them that happened.
_GONE = ("removed", "resumed")


class FaultSpan(msgspec.Struct, frozen=True):
    """One injected fault, from the moment it was asked for until it was seen to be gone."""

    index: int
    kind: str
    #: Symbolic target.
    target: str
    nodes: tuple[str, ...]
    #: Nanoseconds since the run's start.
    start: int
    #: The same; None for one that was never seen to be gone.
    end: int | None

    def name(self) -> str:
        """``fault 0 (partition:leader on n1)``."""
        on = f" on {', '.join(self.nodes)}" if self.nodes and self.target not in self.nodes else ""
        return f"fault {self.index} ({self.kind}:{self.target}{on})"


class Attribution(msgspec.Struct, frozen=True):
    """Where a moment lies, seen from one fault."""

    fault: FaultSpan
    when: When
    #: Time from the end, or to the start, of the fault; 0 during it.
    distance_ns: int


def fault_spans(events: Iterable[FaultEvent]) -> tuple[FaultSpan, ...]:
    """The faults that were injected, in the order of their start."""
    stories: dict[int, dict[str, FaultEvent]] = {}
    for event in events:
        stories.setdefault(event.index, {})[event.phase] = event
    spans: list[FaultSpan] = []
    for index, story in stories.items():
        if "invoked" not in story:
            continue
        invoked = story["invoked"]
        gone = next((story[phase] for phase in _GONE if phase in story), None)
        hit = next((event.nodes for event in reversed(story.values()) if event.nodes), ())
        spans.append(
            FaultSpan(
                index=index,
                kind=invoked.kind,
                target=invoked.target,
                nodes=tuple(map(str, hit)),
                start=invoked.time,
                end=None if gone is None else gone.time,
            )
        )
    return tuple(sorted(spans, key=lambda span: (span.start, span.index)))


def attribute(spans: Sequence[FaultSpan], time: int, node: str | None) -> Attribution | None:
    """The fault to which a moment on a node falls; None where there was no fault at all.

    Of the faults in force one that hit the node is taken; with none in force the nearest of those
    that hit the node, before or after; faults of other nodes only where none ever hit this one.
    """
    hit = [span for span in spans if node in span.nodes]
    for candidates in (hit, spans):
        for span in reversed(candidates):
            if span.start <= time and (span.end is None or time <= span.end):
                return Attribution(span, "during", 0)
    return min(
        (_beside(span, time) for span in hit or spans),
        key=lambda found: (found.distance_ns, found.when, -found.fault.index),
        default=None,
    )


def _beside(span: FaultSpan, time: int) -> Attribution:
    if time < span.start:
        return Attribution(span, "before", span.start - time)
    assert span.end is not None, "one that never ended is in force"
    return Attribution(span, "after", time - span.end)
