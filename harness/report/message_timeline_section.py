"""The report's section that shows every message of a simulated run, ready for the template.

The picture is drawn by a script; readers without it have a table of the last events before the
violation. Source: issue 5, item 9.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from markupsafe import Markup

from splitbrain.checker.verdict import CheckResult
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.judge.evidence_loader import RunRecord
from splitbrain.harness.report.message_timeline import ReadTimeline, read_timeline
from splitbrain.harness.report.message_timeline_data import idle_messages, picture_data
from splitbrain.harness.report.page_assets import json_for_script
from splitbrain.harness.report.story_lines import place_and_event
from splitbrain.harness.report.violations import moment_of
from splitbrain.history.timeline_records import TimelineRecord, TimelineViolation

ROWS_MAX = 200
_US_PER_S = 1_000_000
_NS_PER_US = 1_000

#: Assets that this section alone needs.
SCRIPTS = (
    "message_timeline_index.js",
    "message_timeline_words.js",
    "message_timeline_lanes.js",
    "message_timeline_arrows.js",
    "message_timeline_picture.js",
    "message_timeline.js",
)
STYLES = ("message_timeline.css",)


class Row(msgspec.Struct, frozen=True):
    """One event of the table."""

    time: str
    where: str
    what: str
    detail: str
    is_violation: bool


class MessageTimeline(msgspec.Struct, frozen=True):
    """Section of a run with a timeline, as the template shows it."""

    #: The picture's data, for a script element.
    data: Markup
    rows: list[Row]
    #: One sentence on the rows.
    caption: str
    #: How much of the run is shown, where it is not all.
    cut: str | None
    has_violation: bool
    problems: list[str]
    #: From which all of it was made.
    read: ReadTimeline


def message_timeline(
    path: Path, checkers: Iterable[CheckResult], node_names: Sequence[str]
) -> MessageTimeline | None:
    """Return the section; None for a run without a timeline.

    Violations of ``checkers`` are shown where they name an operation.
    """
    known = known_violations(checkers)
    timeline = read_timeline(path, known)
    if timeline is None:
        return None
    return MessageTimeline(
        data=json_for_script(picture_data(timeline, known, node_names)),
        rows=_rows(timeline),
        caption=_caption(timeline),
        cut=_cut(timeline),
        has_violation=timeline.violation is not None,
        problems=[printable(problem) for problem in timeline.problems],
        read=timeline,
    )


def why_no_timeline(record: RunRecord) -> str | None:
    """Return one sentence on why a simulated run has no timeline; None for other runs."""
    if not record.is_simulated:
        return None
    if record.simulation is not None and record.simulation.untold is not None:
        return record.simulation.untold
    name = record.folder.timeline.name
    return (
        f"{name} is missing or empty, so no message can be shown; `splitbrain replay RUN --trace` "
        "tells them anew."
    )


def known_violations(checkers: Iterable[CheckResult]) -> list[TimelineViolation]:
    """Return each violation whose operation has a time, at its end (else its beginning)."""
    found: list[TimelineViolation] = []
    for result in checkers:
        for violation in result.violations:
            moment = moment_of(violation) if "operation" in violation else None
            if moment is not None:
                found.append(
                    TimelineViolation(
                        time=moment // _NS_PER_US,
                        name=result.checker,
                        detail=str(
                            violation.get("account", violation.get("sentence", result.reason))
                        ),
                    )
                )
    return found


def _rows(timeline: ReadTimeline) -> list[Row]:
    last = timeline.violation
    idle = idle_messages(timeline.records)
    shown = [
        record
        for place, record in enumerate(timeline.records)
        if place not in idle and (last is None or (record.time <= last.time and record is not last))
    ]
    if last is not None:
        shown.append(last)
    return [_row(record) for record in shown[-ROWS_MAX:]]


def _caption(timeline: ReadTimeline) -> str:
    until = "the end" if timeline.violation is None else "the violation"
    return f"At most {ROWS_MAX} events before {until}, without messages that carry nothing new."


def _cut(timeline: ReadTimeline) -> str | None:
    if not timeline.is_cut:
        return None
    shown, total = len(timeline.records), timeline.total
    where = (
        "the last ones"
        if timeline.violation is None
        else "those that led to the violation and some after it"
    )
    return f"{shown:,} of {total:,} events are shown, {where}; all stand in timeline.jsonl."


def _row(record: TimelineRecord) -> Row:
    where, what = place_and_event(record)
    return Row(
        time=f"{record.time / _US_PER_S:.6f}",
        where=printable(where),
        what=printable(what),
        detail=printable(record.detail),
        is_violation=isinstance(record, TimelineViolation),
    )
