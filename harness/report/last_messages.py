"""Inline SVG of the last messages before a violation: a lane per node, time downwards. Pure.

One row per event, so that each is labelled and no label meets another; the rows keep the order of
time and not its lengths. Between a message's beginning and its end the arrow falls past the rows of
what happened meanwhile. Messages that carry nothing new are left out.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from markupsafe import Markup

from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.report.message_timeline import ReadTimeline
from splitbrain.harness.report.message_timeline_data import idle_messages, lanes_of
from splitbrain.harness.report.story_lines import ROLELESS, place_and_event
from splitbrain.harness.report.svg import element, picture
from splitbrain.history.timeline_records import (
    Microseconds,
    TimelineDisk,
    TimelineLife,
    TimelineMessage,
    TimelineRecord,
    TimelineState,
    TimelineViolation,
)

MESSAGES_MAX: Final = 30
#: Changes of roles, logs and lives among them.
CHANGES_MAX: Final = 20
#: Lane of all clients together.
_CLIENTS: Final = "clients"
_ROW_PX: Final = 20
_HEAD_PX: Final = 44
_TIME_PX: Final = 78
_LABEL_CHARACTERS_MAX: Final = 96
_CHARACTER_PX: Final = 6.7
#: Least fall of an arrow, so that its direction in time is seen.
_FALL_PX: Final = 5.0
_US_PER_MS: Final = 1_000
#: An identity in a message says nothing to a reader; the whole text is the row's title.
_IDENTITY: Final = re.compile(r"\w+ [0-9a-f]{16,}(?:, )?")


class LastMessages(msgspec.Struct, frozen=True):
    """The picture, and how much is in it."""

    picture: Markup
    messages: int
    changes: int
    #: Time from the first row to the violation, milliseconds.
    lasting_ms: float


def last_messages(
    timeline: ReadTimeline, moment: Microseconds, node_names: Sequence[str]
) -> LastMessages | None:
    """Return the picture of what was sent until a moment; None where no message is known."""
    places = _places(timeline.records, moment)
    rows = [timeline.records[place] for place in places]
    count = sum(isinstance(record, TimelineMessage) for record in rows)
    if not count:
        return None
    roles = _roles([*timeline.before, *timeline.records[: places[0]]])
    drawing = _Drawing(rows, moment, node_names, roles)
    return LastMessages(
        drawing.draw(timeline.violation, f"The last {count} messages before the violation."),
        messages=count,
        changes=len(rows) - count,
        lasting_ms=(moment - rows[0].time) / _US_PER_MS,
    )


def _places(records: Sequence[TimelineRecord], moment: Microseconds) -> list[int]:
    """Return places of what is drawn, in order of time."""
    idle = idle_messages(records)
    until = bisect_right(records, moment, key=lambda record: record.time)
    messages = [
        place
        for place in range(until)
        if isinstance(message := records[place], TimelineMessage)
        # The violation may be the receiver's answer to one that tells nothing new.
        and (place not in idle or message.arrived == moment)
    ][-MESSAGES_MAX:]
    if not messages:
        return []
    changes = [
        place
        for place in range(messages[0], until)
        if not isinstance(records[place], TimelineMessage | TimelineDisk | TimelineViolation)
    ][-CHANGES_MAX:]
    return sorted([*messages, *changes])


def _roles(records: Iterable[TimelineRecord]) -> dict[str, TimelineState]:
    """Return each node's last state; none of one that does not run."""
    held: dict[str, TimelineState] = {}
    for record in records:
        if isinstance(record, TimelineState):
            held[record.node] = record
        elif isinstance(record, TimelineLife) and record.event in ("crashed", "stopped"):
            held.pop(record.node, None)
    return held


class _Drawing:
    """Lanes at the left, a label for each row at the right."""

    def __init__(
        self,
        rows: Sequence[TimelineRecord],
        moment: Microseconds,
        node_names: Sequence[str],
        roles: dict[str, TimelineState],
    ) -> None:
        self._rows, self._moment, self._roles = rows, moment, roles
        nodes, clients = lanes_of(rows, node_names)
        self._nodes = nodes
        lane_px = 66 if len(nodes) <= 5 else 46
        self._x = {
            name: _TIME_PX + lane * lane_px + lane_px / 2
            for lane, name in enumerate([*nodes, _CLIENTS])
        }
        self._x.update(dict.fromkeys(clients, self._x[_CLIENTS]))
        self._label_px = _TIME_PX + (len(nodes) + 1) * lane_px + 8
        self._lane_px = lane_px
        self._times = [*(record.time for record in rows), moment]
        self._bottom = self._y(len(rows))

    def draw(self, violation: TimelineViolation | None, label: str) -> Markup:
        bottom = self._bottom
        # Arrows come last: nothing may cover them.
        parts = [*self._lanes()]
        arrows: list[Markup] = []
        for row, record in enumerate(self._rows):
            if isinstance(record, TimelineMessage):
                arrows.append(self._arrow(row, record))
            elif (x := self._x.get(getattr(record, "node", ""))) is not None:
                arrows.append(element("circle", class_="event", cx=x, cy=self._y(row), r=4))
            parts.append(self._words(row, record))
        is_told = violation is not None and violation.time == self._moment
        name = violation.name if is_told and violation is not None else "violation"
        where = f"{violation.node} " if is_told and violation and violation.node else ""
        parts += [
            element("line", class_="broken", x1=0, x2=self._width, y1=bottom, y2=bottom),
            self._time(self._moment, bottom + 15),
            element("text", f"{where}{name}", class_="broken", x=self._label_px, y=bottom + 15),
        ]
        return picture(self._width, bottom + 24, label, *parts, *arrows, class_="last-messages")

    @property
    def _width(self) -> float:
        return self._label_px + _LABEL_CHARACTERS_MAX * _CHARACTER_PX

    def _y(self, row: int) -> float:
        return _HEAD_PX + row * _ROW_PX + _ROW_PX / 2

    def _y_at(self, time: Microseconds) -> float:
        """Return the height of a moment between the rows."""
        row = bisect_right(self._times, time) - 1
        if row >= len(self._times) - 1:
            return self._bottom
        begin, end = self._times[row], self._times[row + 1]
        return self._y(row) + _ROW_PX * (time - begin) / (end - begin)

    def _lanes(self) -> list[Markup]:
        parts: list[Markup] = []
        for name in [*self._nodes, _CLIENTS]:
            x = self._x[name]
            parts.append(
                element(
                    "text",
                    _cut(name, self._lane_px),
                    class_="lane",
                    x=x,
                    y=14,
                    text_anchor="middle",
                )
            )
            parts.append(
                element("line", class_="rule", x1=x, x2=x, y1=_HEAD_PX - 6, y2=self._bottom)
            )
            if name != _CLIENTS:
                parts += self._reigns(name, x)
        return parts

    def _reigns(self, node: str, x: float) -> list[Markup]:
        """Return a band along the lane for each role that the node has, named at the top."""
        held = self._roles.get(node)
        top, parts = float(_HEAD_PX - 6), list[Markup]()
        words = "-" if held is None else f"{_cut(held.role or ROLELESS, self._lane_px)}"
        parts.append(element("text", words, class_="soft", x=x, y=28, text_anchor="middle"))
        for row, record in enumerate(self._rows):
            if getattr(record, "node", "") != node:
                continue
            if isinstance(record, TimelineState):
                following = record
            elif isinstance(record, TimelineLife) and record.event in ("crashed", "stopped"):
                following = None
            else:
                continue
            parts += self._band(held, x, top, self._y(row))
            held, top = following, self._y(row)
        return [*parts, *self._band(held, x, top, self._bottom)]

    def _band(
        self, held: TimelineState | None, x: float, top: float, bottom: float
    ) -> list[Markup]:
        if held is None:
            return []
        title = element("title", f"{held.role or ROLELESS} in epoch {held.epoch}")
        wide = 9.0 if held.role == "leader" else 5.0
        box = element(
            "rect",
            class_=f"held e{held.epoch % 6}" + (" leads" if held.role == "leader" else ""),
            x=x - wide / 2,
            y=top,
            width=wide,
            height=max(bottom - top, 1.0),
        )
        return [element("g", title, box)]

    def _arrow(self, row: int, message: TimelineMessage) -> Markup:
        x1, x2, y1 = self._x[message.node], self._x[message.peer], self._y(row)
        arrived = message.arrived
        y2 = self._bottom if arrived is None else self._y_at(arrived)
        fate = "arrived"
        if message.fate != "arrived":
            # It ends on its way, or at the receiver's door.
            share = 0.55 if message.fate == "lost" else 0.85
            x2, y2, fate = x1 + (x2 - x1) * share, y1 + _FALL_PX, "lost"
        elif arrived is None or arrived > self._moment:
            fate = "open"
        y2 = max(y2, y1 + _FALL_PX)
        line = element("line", class_=f"sent {fate}", x1=x1, x2=x2, y1=y1, y2=y2)
        if fate == "lost":
            d = f"M{x2 - 4:.1f} {y2 - 4:.1f}l8 8m0 -8l-8 8"
            return element("g", line, element("path", class_="sent lost cross", d=d))
        long = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1.0)
        ux, uy = (x2 - x1) / long, (y2 - y1) / long
        points = " ".join(
            f"{x2 - back * ux + side * uy:.1f},{y2 - back * uy - side * ux:.1f}"
            for back, side in ((0, 0), (8, 3.5), (8, -3.5))
        )
        return element("g", line, element("polygon", class_="tip", points=points))

    def _time(self, time: Microseconds, y: float) -> Markup:
        text = f"{time / _US_PER_MS:,.3f}"
        return element("text", text, class_="soft", x=_TIME_PX - 10, y=y, text_anchor="end")

    def _words(self, row: int, record: TimelineRecord) -> Markup:
        where, what = place_and_event(record)
        y = self._y(row) + 4
        if isinstance(record, TimelineMessage):
            what = record.name + ("" if record.fate == "arrived" else f", {record.fate}")
        head = printable(f"{where}  {what}")[:_LABEL_CHARACTERS_MAX]
        detail = printable(_IDENTITY.sub("", record.detail)).rstrip(", ")
        room = _LABEL_CHARACTERS_MAX - len(head) - 2
        if len(detail) > room:
            detail = detail[: max(room - 1, 0)] + "…" * (room > 0)
        whole = element("title", printable(f"{where} {what}: {record.detail}"))
        x = self._label_px
        said = element(
            "text", head, class_="" if isinstance(record, TimelineMessage) else "change", x=x, y=y
        )
        more = element("text", detail, class_="soft", x=x + (len(head) + 2) * _CHARACTER_PX, y=y)
        return element("g", whole, self._time(record.time, y), said, *([more] if detail else []))


def _cut(name: str, lane_px: float) -> str:
    room = int(lane_px / _CHARACTER_PX)
    shown = printable(name)
    return shown if len(shown) <= room else shown[: room - 1] + "…"
