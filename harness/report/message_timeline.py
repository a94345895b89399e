"""Reader of the part of ``timeline.jsonl`` that the report can show: the time before the violation.

A long run has more events than a page can carry, or memory: only the end is kept, or the time
before the first violation and a little after, plus the state of the system where that begins.
Broken lines are left out and reported. Source: issue 5, item 9.
"""

from collections import deque
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.history.json_problems import TOO_DEEP, in_words
from splitbrain.history.timeline_records import (
    TimelineFault,
    TimelineLife,
    TimelineLog,
    TimelineRecord,
    TimelineState,
    TimelineViolation,
)

#: Events that a page carries at most.
RECORDS_MAX = 20_000
#: Those of them that follow the violation, where not all have room.
AFTER_MAX = 2_000

_TIME = attrgetter("time")
_LINE = msgspec.json.Decoder(TimelineRecord)


class ReadTimeline(msgspec.Struct, frozen=True):
    """The shown part of a run's timeline, in the order of time."""

    records: list[TimelineRecord]
    #: States, lives, faults and high watermarks that still held where ``records`` begins.
    before: list[TimelineRecord]
    #: The first violation in the file or, where it has none, the earliest known from elsewhere.
    violation: TimelineViolation | None
    #: Events in the whole file, shown or not.
    total: int
    problems: list[str]

    @property
    def is_cut(self) -> bool:
        """Return whether the file has events that are not shown."""
        return self.total > len(self.records)


def read_timeline(
    path: Path,
    known: Sequence[TimelineViolation] = (),
    *,
    records_max: int = RECORDS_MAX,
    after_max: int = AFTER_MAX,
) -> ReadTimeline | None:
    """Return the part of a timeline that is shown; None where there is no file or nothing in it.

    ``known`` are violations that the checkers found; up to ``after_max`` of ``records_max`` events
    follow the first violation, where not all have room.
    """
    reading = _Reading(known, records_max, after_max)
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                reading.take(number, line)
    except FileNotFoundError:
        return None
    except OSError as error:
        reading.problems.append(f"{path.name} cannot be read to its end: {error.strerror}.")
    return reading.result(path.name)


class _Reading:
    """Window of the last events, and the state where they begin."""

    def __init__(
        self, known: Sequence[TimelineViolation], records_max: int, after_max: int
    ) -> None:
        self.problems: list[str] = []
        self._known = sorted(known, key=_TIME)
        self._kept = deque[TimelineRecord]()
        self._records_max = records_max
        self._before: dict[tuple[str, ...], TimelineRecord] = {}
        self._violation: TimelineViolation | None = None
        self._after_left = after_max
        self._total = 0
        self._broken: list[str] = []
        self._torn_bytes = 0

    def take(self, number: int, line: bytes) -> None:
        if not line.strip():
            return
        try:
            record = _LINE.decode(line)
        except UNREADABLE as error:
            # Lines end with a line feed; a harness that is killed leaves one without.
            if line.endswith(b"\n"):
                clause = TOO_DEEP if isinstance(error, RecursionError) else in_words(error)
                self._broken.append(f"line {number}: {clause}")
            else:
                self._torn_bytes = len(line)
            return
        self._total += 1
        if self._violation is None and isinstance(record, TimelineViolation):
            self._violation = record
        elif self._violation is not None or (self._known and record.time > self._known[0].time):
            if self._after_left <= 0 and len(self._kept) >= self._records_max:
                return
            self._after_left -= 1
        self._kept.append(record)
        if len(self._kept) > self._records_max:
            self._drop(self._kept.popleft())

    def _drop(self, record: TimelineRecord) -> None:
        if isinstance(record, TimelineState):
            self._before["state", record.node] = record
        elif isinstance(record, TimelineLife):
            self._before["life", record.node] = record
        elif isinstance(record, TimelineLog) and record.event == "high-watermark":
            self._before["log", record.node] = record
        elif isinstance(record, TimelineFault):
            self._before["fault", str(self._total)] = record

    def result(self, name: str) -> ReadTimeline | None:
        if self._broken:
            count = len(self._broken)
            lines = f"1 line of {name} is" if count == 1 else f"{count:,} lines of {name} are"
            self.problems.append(f"{lines} broken and left out ({self._broken[0]}).")
        if self._torn_bytes:
            self.problems.append(
                f"The last line of {name} is torn ({self._torn_bytes} bytes left out)."
            )
        if not self._kept and not self.problems:
            return None
        records = sorted(self._kept, key=_TIME)
        begin = records[0].time if records else 0
        before = [
            record
            for record in self._before.values()
            if not isinstance(record, TimelineFault)
            or record.until is None
            or record.until >= begin
        ]
        return ReadTimeline(
            records=records,
            before=sorted(before, key=_TIME),
            violation=self._violation or next(iter(self._known), None),
            total=self._total,
            problems=self.problems,
        )
