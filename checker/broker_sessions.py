"""Checker of brokers' sessions: a silent broker is fenced while one controller stays active. Pure.

A broker is silent from when a fault was seen to have ended, frozen or cut it off until the runtime
was asked to heal that. Whoever begins to lead gives each broker that is not fenced a new session,
so a session counts from then at the earliest, and from the end of each fault that hit the
controller itself. A controller counts as awake, and as able to commit, by what it commits alone: a
frozen one, one that is cut off and one that gets no processor commit nothing. Once a session is
over and a controller has been awake for a quarter of one more, its log must say that the broker is
fenced.

Registrations are told by the committed logs (``contracts.committed.Standing``). Where these do not
reach, nothing is demanded. Must never ask what a node believes. Source: KIP-631 (sessions,
fencing); issue 24, section 2.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

import msgspec

from splitbrain.checker.committed_logs import committed_records
from splitbrain.checker.evidence import Evidence
from splitbrain.checker.findings import NAMED_MAX, Poll, Undecided
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.committed import CommittedLog, CommittedRecord, Standing
from splitbrain.contracts.fault import FaultEvent
from splitbrain.contracts.state_event import StateEvent
from splitbrain.contracts.words import counted
from splitbrain.history.fault_windows import (
    FaultWindow,
    Phases,
    by_fault,
    fault_windows,
    has_bitten,
    nodes_hit,
    traits_of,
)
from splitbrain.history.leadership import Reign, reigns

NAME: Final = "broker-sessions"
_NOT_FENCED: Final = "silent-not-fenced"
_NS_PER_MS: Final = 1_000_000
_NS_PER_S: Final = 1_000_000_000
#: Of a session: clocks drift, and a session begins when its controller says so.
_SURELY_OVER: Final = 11, 10
#: A controller that works fences a silent broker before it has been awake for such a part of a
#: session; from one commit to the next it counts as awake for a shorter part at most.
_AWAKE_PARTS: Final = 4
_AWAKE_STEPS: Final = 20
#: Lines that a node wrote before it was silenced are read by the harness a little later.
_UNREAD_NS: Final = 500 * _NS_PER_MS
_COMMITS: Final = ("commit", "high-watermark")


class _Silence(NamedTuple):
    """Time in which nothing came from a broker, ns since the run's start."""

    node: str
    #: Nodes that heard nothing of it; None: all.
    towards: frozenset[str] | None
    start: int
    end: int
    fault: str


class _Look(NamedTuple):
    """A commit of a leader."""

    #: By its own clock, ns since the run's start.
    time: int
    end_offset: int


class _Watch(NamedTuple):
    """Part of a reign without a fault on the controller, from when it can have given sessions."""

    reign: Reign
    looks: Sequence[_Look]


class _Overdue(NamedTuple):
    watch: _Watch
    silence: _Silence
    #: Since when the session lasted, and when it was over for too long.
    since: int
    found: int


class _Registrations:
    """Brokers in service at each offset, as far as any committed log tells."""

    def __init__(self, logs: Mapping[str, CommittedLog], poll: Poll) -> None:
        records: dict[int, CommittedRecord] = {}
        for log in logs.values():
            poll(len(log.records) + 1)
            for record in committed_records(log):
                records.setdefault(record.offset, record)
        #: One past the last offset that is known.
        self.end = max(records, default=-1) + 1
        #: First offset of each epoch with a record of whoever leads, raft's own apart.
        self.first: dict[int, int] = {}
        #: Offset, broker (None: every one), whether it serves (None: nobody knows).
        self._changes: list[tuple[int, str | None, bool | None]] = []
        expected = 0
        for offset in sorted(records):
            record = records[offset]
            if offset != expected:
                self._changes.append((offset, None, None))
            expected = offset + 1
            if record.value is not None or record.f is not None:
                self.first.setdefault(record.epoch, offset)
            standing = _standing(record)
            if standing is not None:
                self._changes.append((offset, standing.observer, standing.serves))

    def of(self, node: str, looks: Sequence[_Look]) -> Iterator[tuple[_Look, bool]]:
        """Yield the looks, each with whether the broker is known to serve there."""
        place, serves = 0, False
        for look in looks:
            if look.end_offset > self.end:
                return
            while place < len(self._changes) and self._changes[place][0] < look.end_offset:
                _, whose, now = self._changes[place]
                if whose is None or whose == node:
                    serves = now is True
                place += 1
            yield look, serves


def check(evidence: Evidence, budget: Budget) -> CheckResult:
    """Judge each silence of a broker that outlasts a session."""
    if evidence.session_ms is None:
        return CheckResult(NAME, Verdict.UNKNOWN, "The plan does not say how long a session lasts.")
    overdue: list[_Overdue] = []
    silences = _silences(evidence)
    unfinished, due = "", 0
    try:
        for silence, watch, registrations in _pairs(evidence, silences, Poll(budget)):
            was_due, found = _judge(silence, watch, registrations, evidence.session_ms)
            due += was_due
            overdue += [] if found is None else [found]
    except Undecided as ended:
        unfinished = f"Not finished: {ended}."
    figures = {"silences": len(silences), "sessions-over": due, _NOT_FENCED: len(overdue)}
    violations = tuple(_described(each, evidence.session_ms) for each in overdue[:NAMED_MAX])
    if violations:
        more = f" ({len(overdue):,} in all)" if len(overdue) > 1 else ""
        reason = f"{violations[0]['sentence']}{more} {unfinished}".rstrip()
        return CheckResult(
            NAME, Verdict.INVALID, reason, figures, violations, undecided=unfinished or None
        )
    unknown = unfinished or _lack(evidence, silences)
    if unknown:
        return CheckResult(NAME, Verdict.UNKNOWN, unknown, figures)
    if not due:
        reason = "No broker was silent for longer than a session while one controller led."
    else:
        reason = (
            f"{counted(due, 'session')} of silent brokers {'was' if due == 1 else 'were'} over, "
            "and each was fenced."
        )
    return CheckResult(NAME, Verdict.VALID, reason, figures)


def _lack(evidence: Evidence, silences: Sequence[_Silence]) -> str | None:
    """Return why nothing can be said of silent brokers; None where it can, or none was silent."""
    if not silences:
        return None
    if not any(log.records for log in evidence.committed_logs.values()):
        return "No committed log tells of brokers."
    if not any(evidence.state_events.values()):
        return "No state event tells who led."
    return None


def _silences(evidence: Evidence) -> list[_Silence]:
    """Return the times in which faults kept brokers silent; those that were never seen are none."""
    found: list[_Silence] = []
    for index, story in by_fault(evidence.faults).items():
        phases: Phases = {event.phase: event for event in story}
        invoked, healing = phases.get("invoked"), phases.get("healing")
        if invoked is None or healing is None or not has_bitten(phases):
            continue
        what = traits_of(invoked).silences
        start, end = phases["verified"].time, healing.time
        name = f"fault {index} ({invoked.kind}:{invoked.target})"
        for node in sorted(evidence.observers):
            if what == "nodes" and node in nodes_hit(story):
                heard = _first_word(evidence.state_events.get(node, ()), start, end)
                found.append(_Silence(node, None, start, heard, name))
            elif what == "links" and (towards := _cut(story, node)):
                found.append(_Silence(node, towards, start, end, name))
    return _joined(found)


def _cut(story: Sequence[FaultEvent], node: str) -> frozenset[str]:
    """Return the nodes that hear nothing of one, by the links of a fault."""
    links = next((event.links for event in reversed(story) if event.links), ())
    return frozenset(str(link.destination) for link in links if link.source == node)


def _first_word(events: Sequence[StateEvent], start: int, end: int) -> int:
    """Return when a node that was to be silent said something after all, else the end."""
    said = (event.time for event in events if event.time is not None)
    return min((time for time in said if start + _UNREAD_NS < time < end), default=end)


def _joined(silences: Sequence[_Silence]) -> list[_Silence]:
    """Return the silences with those made one that follow each other without a gap."""
    found: list[_Silence] = []
    for silence in sorted(silences, key=lambda each: (each.node, each.start)):
        last = found[-1] if found else None
        is_same = last is not None and (last.node, last.towards) == (silence.node, silence.towards)
        if last is not None and is_same and silence.start <= last.end:
            found[-1] = last._replace(end=max(last.end, silence.end))
        else:
            found.append(silence)
    return found


def _pairs(
    evidence: Evidence, silences: Sequence[_Silence], poll: Poll
) -> Iterator[tuple[_Silence, _Watch, _Registrations]]:
    """Yield each silence with each controller that may have been due to end its session."""
    if not silences:
        return
    registrations = _Registrations(evidence.committed_logs, poll)
    windows = fault_windows(evidence.faults)
    for reign in reigns(evidence.state_events, windows):
        first = registrations.first.get(reign.epoch)
        if first is None:
            continue
        events = evidence.state_events[reign.node]
        hit = [window for window in windows if reign.node in window.nodes]
        for watch in _watches(reign, events, hit, first):
            for silence in silences:
                poll(len(watch.looks))
                if silence.towards is None or reign.node in silence.towards:
                    yield silence, watch, registrations


def _watches(
    reign: Reign, events: Sequence[StateEvent], hit: Sequence[FaultWindow], first: int
) -> Iterator[_Watch]:
    """Yield the parts of a reign between faults on its node, once it had written at ``first``."""
    own = [event for event in events if event.incarnation == reign.incarnation]
    stretches: dict[int, list[_Look]] = {}
    for time, event in _timed(own):
        is_commit = event.kind in _COMMITS and event.epoch == reign.epoch
        is_over = reign.end is not None and time > reign.end
        if not is_commit or is_over or event.offset is None or event.offset <= first:
            continue
        if not any(window.start <= time <= window.end for window in hit):
            before = sum(window.end < time for window in hit)
            stretches.setdefault(before, []).append(_Look(time, event.offset))
    for looks in stretches.values():
        yield _Watch(reign, looks)


def _timed(events: Sequence[StateEvent]) -> Iterator[tuple[int, StateEvent]]:
    """Yield the events of one life with when they happened, ns since the run's start.

    The harness reads a line late where it gets no processor, so the node's own clock tells, set by
    the line that was read soonest. Never later than what happened, by more than that one was late.
    """
    timed = [(event.time, event) for event in events if event.time is not None]
    late = min((at - e.node_time for at, e in timed if e.node_time is not None), default=0)
    for at, event in timed:
        yield (at if event.node_time is None else event.node_time + late), event


def _judge(
    silence: _Silence, watch: _Watch, registrations: _Registrations, session_ms: int
) -> tuple[bool, _Overdue | None]:
    """Return whether a session was over in this time, and whether the broker was not fenced."""
    session = session_ms * _NS_PER_MS
    parts, of = _SURELY_OVER
    since = max(silence.start, watch.looks[0].time)
    awake, last, served = 0, since, False
    for look, serves in registrations.of(silence.node, watch.looks):
        if look.time > silence.end:
            break
        if look.time < since:
            continue
        step, last = look.time - last, look.time
        if served and not serves:
            return True, None
        served = serves
        if not serves or look.time - since <= session * parts // of:
            awake = 0
            continue
        awake += min(step, session // _AWAKE_STEPS)
        if awake > session // _AWAKE_PARTS:
            return True, _Overdue(watch, silence, since, look.time)
    return False, None


def _described(overdue: _Overdue, session_ms: int) -> dict[str, Any]:
    reign, silence = overdue.watch.reign, overdue.silence
    silent_ms = (overdue.found - overdue.since) // _NS_PER_MS
    return {
        "kind": _NOT_FENCED,
        "node": silence.node,
        "controller": reign.node,
        "epoch": reign.epoch,
        "sentence": (
            f"{reign.node}, which led epoch {reign.epoch} and committed records, had heard nothing "
            f"of broker {silence.node} for {silent_ms:,} ms at {overdue.found / _NS_PER_S:.3f} s "
            f"({silence.fault}) and had not fenced it; a session is {session_ms:,} ms."
        ),
    }


def _standing(record: CommittedRecord) -> Standing | None:
    """Return the standing that a record gives a broker, if it is one of those."""
    value: Any = record.value
    if record.f is not None or not isinstance(value, dict):
        return None
    try:
        return msgspec.convert(cast("dict[str, Any]", value), Standing)
    except msgspec.ValidationError:
        return None
