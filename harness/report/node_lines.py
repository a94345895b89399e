"""Reader of the lines that the nodes printed around a moment, merged by time.

A node's log may be a gigabyte: a moment is found in it by bisection, and only what lies around it
is read. Forms of times differ from program to program; those below were seen. A time without a zone
is in the zone that brings the log's first line nearest to the run's beginning. Where the engine
stamped the lines, its clock counts and not the node's, which a fault may have changed.
"""

import calendar
import mmap
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.judge.last_words import node_logs
from splitbrain.history.run_folder import RunFolder

#: Either side of a moment.
AROUND_S: Final = 2.0
LINE_CHARACTERS_MAX: Final = 300
#: Read of one log on either side of a moment, at most.
_NEAR_BYTES: Final = 1 << 18
#: Read in search of the next line with a time.
_LOOK_BYTES: Final = 1 << 16
#: A line's time stands within these.
_STAMP_BYTES: Final = 256
_NS_PER_S: Final = 1_000_000_000
#: Zones differ by quarters of an hour.
_ZONE_STEP_NS: Final = 900 * _NS_PER_S

_CLOCK: Final = rb"(?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d)(?:[.,](?P<part>\d{1,9}))?"
_MONTH: Final = rb"(?P<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_MONTHS: Final = tuple(b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())
#: As a container engine writes it before each line.
_ENGINE: Final = re.compile(rb"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z ")
_JSON_TIME: Final = re.compile(rb'"(?:time|ts|timestamp|monotonic_ns)" ?: ?[\d.]+, ?')
_FORMS: Final = (
    # ISO 8601 and its relatives: Go, Java's and Python's loggers, Erlang, PostgreSQL
    re.compile(
        rb"(?P<Y>\d{4})[-/](?P<m>\d\d)[-/](?P<d>\d\d)[T ]"
        + _CLOCK
        + rb" ?(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d)?"
    ),
    # Redis, web servers
    re.compile(
        rb"(?P<d>\d\d)[ /]"
        + _MONTH
        + rb"[ /](?P<Y>\d{4})[ :]"
        + _CLOCK
        + rb" ?(?P<zone>[+-]\d{4})?"
    ),
    # JSON with seconds, milliseconds, microseconds or nanoseconds since 1970
    re.compile(
        rb'"(?:time|ts|timestamp)" ?: ?"?(?P<since>\d{10}(?:\d{3}){0,3})(?:\.(?P<part>\d{1,9}))?'
    ),
    # glog, with or without the year
    re.compile(rb"^[IWEF](?P<y>\d\d)?(?P<m>\d\d)(?P<d>\d\d) " + _CLOCK),
    # syslog
    re.compile(rb"^(?:<\d+>)?" + _MONTH + rb" +(?P<d>\d{1,2}) " + _CLOCK),
)


class NodeLine(msgspec.Struct, frozen=True):
    """One line of a node's log."""

    #: Nanoseconds since the run's start.
    time: int
    #: Node, with the log's name where it has several.
    node: str
    text: str


class LinesAround(msgspec.Struct, frozen=True):
    """Lines near a moment, in order of time."""

    moment: int
    lines: list[NodeLine]
    #: Lines before the moment, which stand first.
    before: int
    #: Whether more lie within the stretch.
    is_cut: bool


class NodeLogs:
    """The logs of a run's nodes."""

    def __init__(
        self, folder: RunFolder, nodes: Sequence[str], started_at: str, clocks: Mapping[str, str]
    ) -> None:
        """Open them; ``clocks`` are nodes whose clock a fault changed, with the fault's kind.

        ``started_at`` is the run's beginning in ISO 8601; where it is none there are no lines.
        """
        #: Sentences on logs that tell no times, or other ones.
        self.notes: list[str] = []
        self._logs: list[_Log] = []
        try:
            zero = int(datetime.fromisoformat(started_at).timestamp() * 1e6) * 1_000
        except ValueError:
            return
        for node in nodes:
            paths = list(node_logs(folder.root / "nodes" / node))
            for path in paths:
                name = node if len(paths) == 1 else f"{node} {path.name}"
                log = _Log(name, path, zero)
                if log.is_empty:
                    continue
                if not log.has_times:
                    self.notes.append(f"The lines of {name} have no times, so none is shown.")
                    continue
                self._logs.append(log)
                if node in clocks and not log.by_engine:
                    self.notes.append(
                        f"{clocks[node]} changed the clock of {node}: its lines have the times "
                        "that it told."
                    )

    def around(self, moment: int, lines_max: int) -> LinesAround | None:
        """Return the lines nearest to a moment of the run, ns; None where there are none."""
        reach = int(AROUND_S * _NS_PER_S)
        found: list[NodeLine] = []
        is_cut = False
        for log in self._logs:
            lines, more = log.between(moment - reach, moment, moment + reach)
            found += lines
            is_cut |= more
        if not found:
            return None
        if len(found) > lines_max:
            found.sort(key=lambda line: abs(line.time - moment))
            found, is_cut = found[:lines_max], True
        found.sort(key=lambda line: line.time)
        before = bisect_left(found, moment, key=lambda line: line.time)
        return LinesAround(moment, found, before, is_cut)


class _Log:
    """One file, by offsets of its lines."""

    def __init__(self, name: str, path: Path, zero: int) -> None:
        self._name, self._path, self._zero = name, path, zero
        self._zone = 0
        self._text: bytes | mmap.mmap = b""
        # An empty file cannot be mapped, and one that cannot be read has no lines.
        with suppress(OSError, ValueError), path.open("rb") as file:
            self._text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.is_empty = not self._text[:_LOOK_BYTES].strip()
        first = self._stamped(0, len(self._text))
        self.has_times = first is not None
        self.by_engine = bool(_ENGINE.match(self._text[:_STAMP_BYTES]))
        if first is not None and not self._tells_zone(first[0]):
            self._zone = round(first[1] / _ZONE_STEP_NS) * _ZONE_STEP_NS

    def _tells_zone(self, offset: int) -> bool:
        match = _match(self._text[offset : offset + _STAMP_BYTES])
        return match is not None and bool(
            match.groupdict().get("zone") or match.groupdict().get("since")
        )

    def between(self, since: int, moment: int, until: int) -> tuple[list[NodeLine], bool]:
        """Return the lines from one moment to another, and whether some of them were left out."""
        middle = self._first_from(moment)
        start, end = self._first_from(since), self._first_from(until + 1)
        is_cut = middle - start > _NEAR_BYTES or end - middle > _NEAR_BYTES
        if middle - start > _NEAR_BYTES:
            start = self._next_line(middle - _NEAR_BYTES)
        lines: list[NodeLine] = []
        time: int | None = None
        for _, line in self._lines(start, min(end, middle + _NEAR_BYTES)):
            # A line without one belongs to the line before it, as those of a traceback do.
            told = self._time(line)
            time = time if told is None else told
            if time is not None and since <= time <= until:
                lines.append(NodeLine(time, self._name, _shown(line)))
        return lines, is_cut

    def _first_from(self, time: int) -> int:
        """Return the offset of the first line of a time or later."""
        low, high = 0, len(self._text)
        while low < high:
            middle = (low + high) // 2
            found = self._stamped(self._line_start(middle), high)
            if found is None or found[1] >= time:
                high = middle
            else:
                low = max(middle + 1, self._next_line(found[0]))
        return self._line_start(low) if low < len(self._text) else low

    def _stamped(self, offset: int, end: int) -> tuple[int, int] | None:
        """Return offset and time of the first line that has one, not far from an offset."""
        for start, line in self._lines(offset, min(end, offset + _LOOK_BYTES)):
            time = self._time(line)
            if time is not None:
                return start, time
        return None

    def _lines(self, offset: int, end: int) -> Iterator[tuple[int, bytes]]:
        while offset < end:
            following = self._next_line(offset)
            yield offset, self._text[offset : min(following, offset + 4 * LINE_CHARACTERS_MAX)]
            offset = following

    def _line_start(self, offset: int) -> int:
        return self._text.rfind(b"\n", max(0, offset - _LOOK_BYTES), offset) + 1 or max(
            0, offset - _LOOK_BYTES
        )

    def _next_line(self, offset: int) -> int:
        """Return the beginning of the next line; of a line without end, some way further."""
        limit = min(len(self._text), offset + _LOOK_BYTES)
        return self._text.find(b"\n", offset, limit) + 1 or limit

    def _time(self, line: bytes) -> int | None:
        match = _match(line[:_STAMP_BYTES])
        time = None if match is None else _since_1970(match, self._zero)
        return None if time is None else time - self._zero - self._zone


def _match(line: bytes) -> re.Match[bytes] | None:
    return next((found for form in _FORMS if (found := form.search(line)) is not None), None)


def _since_1970(match: re.Match[bytes], zero: int) -> int | None:
    """Return nanoseconds since 1970; None where the digits are no time."""
    parts = match.groupdict()
    fraction = int((parts.get("part") or b"0").ljust(9, b"0"))
    if since := parts.get("since"):
        unit: int = 10 ** (19 - len(since))
        return int(since) * unit + (fraction if unit == _NS_PER_S else 0)
    year = int(parts.get("Y") or 2000 + int(parts.get("y") or 0))
    if not parts.get("Y") and not parts.get("y"):
        year = datetime.fromtimestamp(zero / 1e9).year  # noqa: DTZ006 - the node's own zone, too
    month = _MONTHS.index(parts["month"]) + 1 if parts.get("month") else int(parts["m"])
    try:
        seconds = calendar.timegm(
            (year, month, int(parts["d"]), int(parts["H"]), int(parts["M"]), int(parts["S"]))
        )
    except ValueError:
        return None
    return (seconds - _zone_s(parts.get("zone"))) * _NS_PER_S + fraction


def _zone_s(zone: bytes | None) -> int:
    if zone is None or zone[:1] not in (b"+", b"-"):
        return 0
    seconds = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
    return -seconds if zone[:1] == b"-" else seconds


def _shown(line: bytes) -> str:
    """Return the line without the time that stands beside it."""
    own = _JSON_TIME.sub(b"", line) if line.startswith(b"{") else _ENGINE.sub(b"", line)
    text = printable(own.decode("utf-8", "replace").rstrip().expandtabs(4))
    return text if len(text) <= LINE_CHARACTERS_MAX else text[: LINE_CHARACTERS_MAX - 1] + "…"
