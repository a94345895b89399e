"""Timeline of a run as spans on lanes, read as a stream; judges nothing.

Two spans of one lane never overlap. Of the history only operations that are open are held, so that
any length of it can be exported.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import msgspec

from splitbrain.checker.anomalies.account import headline_of, steps_in
from splitbrain.checker.anomalies.names import name_of
from splitbrain.checker.models.model import text_of
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.fault import FaultEvent
from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.folder.results import Results
from splitbrain.harness.folder.results import read as read_results
from splitbrain.history.course import LeaderSighting
from splitbrain.history.errors import HistoryError
from splitbrain.history.fault_windows import FaultWindow, fault_windows
from splitbrain.history.leadership import Reign, reigns, sighted_reigns
from splitbrain.history.plan import Plan
from splitbrain.history.reader import HistoryReader
from splitbrain.history.records import Event
from splitbrain.history.run_folder import RunFolder

_Line = TypeVar("_Line")
#: Owner of the lanes of operations; the others belong to nodes.
CLIENTS: Final = "clients"
Sort = Literal["operation", "fault", "leader"]
#: Characters of a value; the history has the whole of it.
_VALUE_MAX: Final = 200


class Span(msgspec.Struct, frozen=True):
    """Something that lasted; times in ns since the run's start."""

    sort: Sort
    #: ``CLIENTS``, or a node.
    owner: str
    #: Lane of its owner: ``client 3``, ``faults``.
    lane: str
    name: str
    start: int
    end: int
    details: dict[str, Any]
    #: Whether it went wrong: an operation that failed or whose outcome is unknown.
    is_bad: bool = False


class Instant(msgspec.Struct, frozen=True):
    """Moment of a violation; ns since the run's start."""

    name: str
    time: int
    #: None: no node is named.
    node: str | None
    details: dict[str, Any]


class Timeline:
    """Spans and instants of one run folder, whatever its state."""

    def __init__(self, folder: RunFolder, plan: Plan) -> None:
        self.folder, self.plan = folder, plan
        self.results = _results(folder)
        #: Sentences on what is missing; known once the spans were read.
        self.problems: list[str] = []
        #: End of the last span, ns; likewise.
        self.end = 0

    def spans(self) -> Iterator[Span]:
        """Yield the operations in the order of their end, then leaders and faults."""
        for span in self._operations():
            self.end = max(self.end, span.end)
            yield span
        faults = list(_lines(self.folder.faults, FaultEvent))
        self.end = max([self.end, *(event.time for event in faults)])
        windows = fault_windows(faults, self.end)
        for span in (*_leaders(self._reigns(windows), self.end), *_faults(windows)):
            self.end = max(self.end, span.end)
            yield span

    def instants(self) -> list[Instant]:
        """Return the violations, by time; one without a moment stands at the end of the run."""
        found = [
            instant
            for result in (self.results.checkers if self.results else ())
            if result.verdict is Verdict.INVALID
            for instant in self._instants_of(result)
        ]
        return sorted(found, key=lambda instant: instant.time)

    def _instants_of(self, result: CheckResult) -> Iterator[Instant]:
        for violation in result.violations or ({},):
            steps = steps_in(violation)
            time, node = violation.get("time"), violation.get("node")
            if steps:
                time, node = steps[-1].time, steps[-1].node
            sentence = violation.get("account") or violation.get("sentence") or headline_of(result)
            details = {"checker": result.checker, "account": str(sentence)}
            if steps:
                details["operations"] = ", ".join(str(step.index) for step in steps)
            if not isinstance(time, int):
                time, details["moment"] = self.end, "not known: the end of the run"
            name = name_of(result.checker, violation) if violation else result.checker
            yield Instant(name, max(time, 0), node if isinstance(node, str) else None, details)

    def _operations(self) -> Iterator[Span]:
        lanes, last = _ClientLanes(self.plan.experiment.concurrency), 0
        if not self.folder.history.exists():
            self.problems.append("There is no history.jsonl, so no operation is shown.")
            return
        try:
            for event in HistoryReader(self.folder.history):
                last = event.time
                if event.type == "invoke":
                    lanes.open(event)
                elif (begun := lanes.close(event)) is not None:
                    yield _operation(*begun, event, event.time)
        except (HistoryError, RecursionError) as error:
            what = error.problem if isinstance(error, HistoryError) else "nested too deeply"
            self.problems.append(f"history.jsonl is broken, and shown up to there ({what}).")
        for lane, invoked in lanes.left():
            yield _operation(lane, invoked, None, max(last, invoked.time))

    def _reigns(self, windows: Sequence[FaultWindow]) -> list[Reign]:
        told: dict[str, list[StateEvent]] = {}
        for node in self.folder.node_names():
            # A node tells of each commit too, as often as clients write.
            kept = _lines(self.folder.state_events(node), StateEvent, _TELLS_OF_LEADERS)
            if events := list(kept):
                told[str(node)] = events
        if told:
            return reigns(told, windows)
        return sighted_reigns(list(_lines(self.folder.leaders, LeaderSighting)), self.end)


_TELLS_OF_LEADERS: Final = (b'"role"', b'"started"', b'"stopped"', b'"fatal"')


class _ClientLanes:
    """Lanes of clients: that of the worker slot, or another one while that is taken."""

    def __init__(self, slots: int) -> None:
        self._slots = max(slots, 1)
        self._open: dict[int, tuple[int, Event]] = {}
        self._taken: set[int] = set()

    def open(self, event: Event) -> None:
        """Begin an operation; one that its process left open is over without a word."""
        self.close(event)
        lane = event.process % self._slots
        while lane in self._taken:
            lane += self._slots
        self._taken.add(lane)
        self._open[event.process] = lane, event

    def close(self, event: Event) -> tuple[int, Event] | None:
        """Return the lane and the invocation of what ends; None: nothing was begun."""
        begun = self._open.pop(event.process, None)
        if begun is not None:
            self._taken.discard(begun[0])
        return begun

    def left(self) -> Iterable[tuple[int, Event]]:
        """Return those that never ended."""
        return self._open.values()


def _operation(lane: int, invoked: Event, ended: Event | None, end: int) -> Span:
    of = invoked if ended is None else ended
    details: dict[str, Any] = {
        "outcome": "unknown" if ended is None or ended.type == "info" else ended.type,
        "process": invoked.process,
        "index": invoked.index,
        "asked": _text(invoked.value),
    }
    if ended is not None and ended.type == "ok":
        details["answer"] = _text(ended.value)
    for name in ("key", "node", "error"):
        value = getattr(of, name) or getattr(invoked, name)
        if value is not None:
            details[name] = value
    if of.position is not None:
        details["epoch"], details["offset"] = of.position
    if invoked.final:
        details["final"] = True
    name = invoked.f if invoked.key is None else f"{invoked.f} {invoked.key}"
    is_bad = details["outcome"] != "ok"
    start, end = invoked.time, max(end, invoked.time)
    return Span("operation", CLIENTS, f"client {lane}", name, start, end, details, is_bad)


def _text(value: object) -> str:
    text = text_of(value)
    return text if len(text) <= _VALUE_MAX else f"{text[:_VALUE_MAX]}..."


def _leaders(found: Iterable[Reign], end: int) -> Iterator[Span]:
    lanes = _Lanes("leader")
    for reign in found:
        # The node's events were never stamped with the run's time.
        if reign.start is None:
            continue
        over = max(end, reign.start) if reign.end is None else reign.end
        lane = lanes.lane(reign.node, reign.start, over)
        details = {"epoch": reign.epoch, "incarnation": reign.incarnation}
        yield Span("leader", reign.node, lane, f"epoch {reign.epoch}", reign.start, over, details)


def _faults(windows: Iterable[FaultWindow]) -> Iterator[Span]:
    lanes = _Lanes("faults")
    for window in windows:
        details = {
            "index": window.index,
            "target": window.target,
            "took effect": window.verified,
            "healed": window.healed,
        }
        # A fault of links alone names no node.
        for node in window.nodes or ("cluster",):
            lane = lanes.lane(node, window.start, window.end)
            yield Span("fault", node, lane, window.kind, window.start, window.end, details)


class _Lanes:
    """Lanes of nodes, as many as there are things at one time; given in the order of starts."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._ends: dict[str, list[int]] = {}

    def lane(self, owner: str, start: int, end: int) -> str:
        """Return the first lane of an owner that is free."""
        ends = self._ends.setdefault(owner, [])
        place = next((place for place, over in enumerate(ends) if over <= start), len(ends))
        ends[place : place + 1] = [end]
        return self._name if place == 0 else f"{self._name} {place + 1}"


def _lines(path: Path, type_: type[_Line], words: Sequence[bytes] = ()) -> Iterator[_Line]:
    """Yield the lines of a file that fit, of those with one of the words."""
    if not path.exists():
        return
    decoder = msgspec.json.Decoder(type_)
    with path.open("rb") as file:
        for line in file:
            if not words or any(word in line for word in words):
                with suppress(*UNREADABLE):
                    yield decoder.decode(line)


def _results(folder: RunFolder) -> Results | None:
    with suppress(OSError, *UNREADABLE):
        return read_results(folder.results)
    return None
