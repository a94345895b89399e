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

_OFFSETS = {
    "high-watermark": "high watermark {}",
    "append": "log ends at {}",
    "truncate": "log cut back to {}",
}


def story_lines(story: Iterable[tuple[int, TimelineRecord]]) -> list[str]:
    """Return one line for each pair of a step and the record made in it."""
    return [f"{_ms(record.time):>12}  {step:>8}  {_words(record)}" for step, record in story]


def heading() -> str:
    """Return the names of the columns."""
    return f"{'ms':>12}  {'step':>8}  what"


def _words(record: TimelineRecord) -> str:
    where, what = _place_and_deed(record)
    detail = f" ({record.detail})" if record.detail else ""
    return printable(f"{where:<4} {what}{detail}")


def _place_and_deed(record: TimelineRecord) -> tuple[str, str]:
    match record:
        case TimelineMessage():
            fate = f"arrives {_ms(record.arrived)}" if record.arrived is not None else record.fate
            if record.arrived is None and record.fate == "arrived":
                fate = "under way"
            return record.node, f"-> {record.peer:<4} {record.name}, {fate}"
        case TimelineState():
            follows = f" under {record.leader}" if record.leader not in (None, record.node) else ""
            return record.node, f"is {record.role} in epoch {record.epoch}{follows}"
        case TimelineLife():
            return record.node, record.event
        case TimelineDisk():
            done = "" if record.until is None else f", done {_ms(record.until)}"
            return record.node, f"disk: {record.name}{done}"
        case TimelineLog():
            return record.node, _OFFSETS[record.event].format(record.offset)
        case TimelineFault():
            until = "to the end" if record.until is None else f"until {_ms(record.until)}"
            nodes = f" on {', '.join(record.nodes)}" if record.nodes else ""
            return "****", f"fault {record.name}{nodes} {until}"
        case TimelineViolation():
            where = f" at {record.node}" if record.node else ""
            return "!!!!", f"VIOLATION of {record.name}{where}"


def _ms(time_us: int) -> str:
    return f"{time_us / US_PER_MS:,.3f}"
