"""The story of a simulated run as lines for people: ``splitbrain replay RUN --trace``. Pure.

One line for each record, in the order in which things began: virtual milliseconds, the world's step
in which it was seen, place, and event. The step is the argument of ``--until-step``.
"""

from collections.abc import Iterable

from splitbrain.contracts.fault import US_PER_MS
from splitbrain.harness.console.plain_text import printable
from splitbrain.history.timeline_records import (
    TimelineDisk,
    TimelineFault,
    TimelineLife,
    TimelineLog,
    TimelineMessage,
    TimelineRecord,
    TimelineState,
    TimelineViolation,
)

#: Role of a running node that has not stated one yet.
ROLELESS = "starting"


def story_lines(story: Iterable[tuple[int, TimelineRecord]]) -> list[str]:
    """Return one line for each pair of a step and the record made in it."""
    return [
        f"{record.time / US_PER_MS:>12,.3f}  {step:>8}  {_line(record)}" for step, record in story
    ]


def heading() -> str:
    """Return the names of the columns."""
    return f"{'ms':>12}  {'step':>8}  what"


def _line(record: TimelineRecord) -> str:
    where, what = place_and_event(record)
    detail = f" ({record.detail})" if record.detail else ""
    return printable(f"{where:<8} {what}{detail}")


def place_and_event(record: TimelineRecord) -> tuple[str, str]:
    """Return place and event in words, as on the page."""
    match record:
        case TimelineMessage():
            return f"{record.node} → {record.peer}", f"{record.name}, {_fate(record)}"
        case TimelineState():
            leader = "" if record.leader in (None, record.node) else f", leader {record.leader}"
            return record.node, f"{record.role or ROLELESS} in epoch {record.epoch}{leader}"
        case TimelineLife():
            return record.node, record.event
        case TimelineDisk():
            return record.node, f"disk: {record.name}{_lasting(record.time, record.until)}"
        case TimelineLog():
            what = "high watermark" if record.event == "high-watermark" else f"{record.event}, end"
            return record.node, f"{what} {record.offset}"
        case TimelineFault():
            lasting = _lasting(record.time, record.until) or ", to the end"
            return ", ".join(record.nodes) or "all", f"fault: {record.name}{lasting}"
        case TimelineViolation():
            return record.node or "-", f"violation: {record.name}"


def _fate(message: TimelineMessage) -> str:
    if message.fate != "arrived":
        return message.fate
    if message.arrived is None:
        return "under way at the end"
    return f"arrived after {(message.arrived - message.time) / US_PER_MS:,.3f} ms"


def _lasting(start: int, end: int | None) -> str:
    return "" if end is None else f" for {(end - start) / US_PER_MS:,.3f} ms"
