"""Coverage of one run: which fault met which role, epoch phase and workload. Pure.

Counts injected faults by the state of the nodes they hit; a fault that hits nodes in two roles
counts once in each. Judges nothing. Roles and phases are read from state events; the rest is
``unknown``, never guessed: a node without events, one that another fault just ended, an epoch that
a silent node may have left. Definitions: ``docs/faults/coverage.md``.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from splitbrain.contracts.fault import FaultEvent
from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.folder.coverage_cells import (
    ROLES,
    CoverageCell,
    EpochPhase,
    Role,
    sum_coverage,
)
from splitbrain.harness.judge.evidence_loader import RunRecord
from splitbrain.history.course import LeaderSighting
from splitbrain.history.fault_windows import FaultWindow, fault_windows

#: Roles in state events, to ours; a node that knows no leader is or may soon be a candidate.
_ROLES: Final[dict[str, Role]] = {
    "leader": "leader",
    "follower": "follower",
    "candidate": "candidate",
    "prospective": "candidate",
    "unattached": "candidate",
    "resigned": "candidate",
    "observer": "observer",
}
_ENDINGS = frozenset({"stopped", "fatal"})


class Standing(msgspec.Struct, frozen=True):
    """Role and epoch of a node at one moment."""

    role: Role
    #: None where unknown.
    epoch: int | None = None


UNKNOWN: Final = Standing("unknown")


class _Change(msgspec.Struct, frozen=True):
    time: int
    role: Role
    epoch: int
    highest: int


class _Life(msgspec.Struct):
    incarnation: int
    first: int
    last: int
    #: Whether it announced its end.
    announced_end: bool = False


class NodeTimeline:
    """Timeline of one node's state events; empty if any of them lacks a time."""

    def __init__(self, events: Sequence[StateEvent]) -> None:
        self._changes: list[_Change] = []
        self._lives: list[_Life] = []
        #: Epoch to the time of the first commit that the node, leading it, stated.
        self.commits: dict[int, int] = {}
        self.tells_commits = False
        #: Epoch to the offset of its first record, as its leader said.
        self._begins: dict[int, int] = {}
        timed = [(event.time, event) for event in events if event.time is not None]
        if len(timed) == len(events):
            for time, event in sorted(timed, key=lambda stamped: stamped[0]):
                self._take(time, event)

    def highest_epoch(self, time: int) -> int | None:
        """Return the highest epoch that the node had reached by then."""
        change = self._change_at(time)
        return None if change is None else change.highest

    def standing(self, time: int, endings: Iterable[FaultWindow]) -> Standing:
        """Return the state at ``time``; ``endings`` are other faults that end its process."""
        change = self._change_at(time)
        place = bisect_right(self._lives, time, key=lambda life: life.first) - 1
        if change is None or place < 0:
            return UNKNOWN
        life = self._lives[place]
        standing = Standing(change.role, change.epoch)
        if time <= life.last:
            return standing
        if life.announced_end:
            return Standing("down", change.epoch)
        for window in endings:
            # A fault over before the node's last event, or before this start, did not end it.
            begun_since = window.end < time and window.start < life.first
            if window.start > time or window.end < life.last or begun_since:
                continue
            seen_down = window.seen is not None and window.seen <= time <= window.end
            came_back = window.start < life.first
            return Standing("down", change.epoch) if seen_down and not came_back else UNKNOWN
        return standing

    def _change_at(self, time: int) -> _Change | None:
        place = bisect_right(self._changes, time, key=lambda change: change.time) - 1
        return self._changes[place] if place >= 0 else None

    def _take(self, time: int, event: StateEvent) -> None:
        if not self._lives or self._lives[-1].incarnation != event.incarnation:
            self._lives.append(_Life(event.incarnation, time, time))
        life = self._lives[-1]
        life.last = time
        life.announced_end = life.announced_end or event.kind in _ENDINGS
        before = self._changes[-1] if self._changes else None
        role = before.role if before is not None else "unknown"
        if event.kind in ("started", "role"):
            role = _ROLES.get(event.role or "", "unknown")
        if before is None or (role, event.epoch) != (before.role, before.epoch):
            highest = event.epoch if before is None else max(event.epoch, before.highest)
            self._changes.append(_Change(time, role, event.epoch, highest))
        self._take_log_event(time, event, leads=role == "leader")

    def _take_log_event(self, time: int, event: StateEvent, *, leads: bool) -> None:
        """Note a leader's first commit in its own epoch, not that of earlier records."""
        if event.kind == "append" and leads and event.base_offset is not None:
            self._begins.setdefault(event.epoch, event.base_offset)
        if event.kind not in ("commit", "high-watermark"):
            return
        self.tells_commits = True
        begin = self._begins.get(event.epoch)
        is_own = begin is None or event.offset is None or event.offset > begin
        if leads and is_own:
            self.commits.setdefault(event.epoch, time)


class ClusterTimeline:
    """Timelines of all nodes of a run."""

    def __init__(
        self,
        nodes: Sequence[str],
        state_events: Mapping[str, Sequence[StateEvent]],
        windows: Sequence[FaultWindow],
    ) -> None:
        """Read the events; ``windows`` are those of all injected faults."""
        self._timelines = {node: NodeTimeline(state_events.get(node, ())) for node in nodes}
        self._endings = [window for window in windows if window.may_end_processes]

    def standing(self, node: str, time: int, fault: int) -> Standing:
        """Return a node's state at ``time`` as a fault came, before that fault's own effect."""
        timeline = self._timelines.get(node)
        if timeline is None:
            return UNKNOWN
        others = [
            window for window in self._endings if window.index != fault and node in window.nodes
        ]
        return timeline.standing(time, others)

    def phase(self, time: int, fault: int) -> EpochPhase:
        """Return the phase of the newest epoch when a fault came; arguments as of ``standing``."""
        timelines = list(self._timelines.values())
        highest = [timeline.highest_epoch(time) for timeline in timelines]
        known = [epoch for epoch in highest if epoch is not None]
        if not timelines or len(known) < len(timelines):
            return "unknown"
        newest = max(known)
        standings = [self.standing(node, time, fault) for node in self._timelines]
        roles = [standing.role for standing in standings]
        if Standing("leader", newest) not in standings:
            return "unknown" if "unknown" in roles else "election"
        if 2 * roles.count("candidate") > len(roles) - roles.count("observer"):
            return "election"
        if not any(timeline.tells_commits for timeline in timelines):
            return "unknown"
        committed = [
            timeline.commits[newest] for timeline in timelines if newest in timeline.commits
        ]
        return "settled" if committed and min(committed) <= time else "new-leader"


def coverage_of(record: RunRecord) -> tuple[CoverageCell, ...]:
    """Return a recorded run's cells; from outside sightings where its nodes state nothing."""
    plan = record.plan
    from_outside = plan is not None and not plan.declares_state_events and not record.state_events
    return fault_coverage(
        record.faults,
        nodes=record.node_names,
        workload="unknown workload" if plan is None else plan.workload,
        end_time=record.end_time,
        state_events=record.state_events,
        sightings=record.sightings if from_outside else None,
    )


def fault_coverage(
    events: Sequence[FaultEvent],
    *,
    nodes: Sequence[str],
    workload: str,
    end_time: int,
    state_events: Mapping[str, Sequence[StateEvent]],
    sightings: Sequence[LeaderSighting] | None = None,
) -> tuple[CoverageCell, ...]:
    """Return the cells of one run that are not zero, sorted; ``sightings`` if it has no events."""
    windows = fault_windows(events, end_time)
    timeline = ClusterTimeline(nodes, state_events, windows)
    views = {event.index: event.leader for event in events if event.leader is not None}
    cells: list[CoverageCell] = []
    for window in windows:
        if window.spared:
            continue
        phase: EpochPhase = "unknown"
        if sightings is None:
            phase = timeline.phase(window.start, window.index)
            roles = [
                timeline.standing(node, window.start, window.index).role for node in window.nodes
            ]
        else:
            leader = views.get(window.index) or _seen_to_lead(sightings, window.start)
            roles = [_role_from_outside(node, leader, window, windows) for node in window.nodes]
        cells += [
            CoverageCell(window.kind, role, phase, workload, 1, int(window.verified))
            for role in ROLES
            if role in (roles or ["unknown"])
        ]
    return sum_coverage([cells])


def _seen_to_lead(sightings: Sequence[LeaderSighting], time: int) -> str | None:
    before = [seen.leader for seen in sightings if seen.time <= time]
    return before[-1] if before else None


def _role_from_outside(
    node: str, leader: str | None, window: FaultWindow, windows: Sequence[FaultWindow]
) -> Role:
    """Return the role by the leader view: every node but its leader follows."""
    for other in windows:
        ends_it = other.may_end_processes and node in other.nodes and other.index != window.index
        if ends_it and other.start <= window.start <= other.end:
            is_down = other.seen is not None and other.seen <= window.start
            return "down" if is_down else "unknown"
    if leader is None:
        return "unknown"
    return "leader" if node == leader else "follower"
