"""Circumstances of an answer: the node's role and epoch, faults in force, who led; pure.

A violation is joined with them here, so that its account says what went on at that moment. Roles,
reigns and fault windows are read where all of a judgement reads them; nothing is found anew. Must
never say more than was recorded: a node of unknown role has none.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from splitbrain.checker.anomalies.account import (
    Step,
    step_of,
    steps_in,
    tell,
    with_name_before,
)
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.fault import FaultEvent
from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.judge.fault_coverage import ClusterTimeline
from splitbrain.history.course import LeaderSighting
from splitbrain.history.fault_windows import FaultWindow, fault_windows
from splitbrain.history.leadership import Reign, reigns, sighted_reigns
from splitbrain.history.records import PairedOperation

_NS_PER_S: Final = 1_000_000_000
#: Number of no fault, for the standing of a node beside all of them.
_NO_FAULT: Final = -1
#: Faults of one node that are named.
_FAULTS_NAMED_MAX: Final = 2
#: Roles that say something of an answer; whoever is down or unknown has none.
_TOLD: Final = frozenset({"follower", "candidate", "observer", "unattached"})


class Circumstances:
    """Roles, faults and leaders of one run, at any moment of it."""

    def __init__(
        self,
        nodes: Sequence[str],
        state_events: Mapping[str, Sequence[StateEvent]],
        faults: Sequence[FaultEvent],
        end_time: int,
        sightings: Sequence[LeaderSighting] = (),
    ) -> None:
        self._windows = fault_windows(faults, end_time)
        self._stated = any(state_events.values())
        self._reigns = (
            reigns(state_events, self._windows)
            if self._stated
            else sighted_reigns(sightings, end_time)
        )
        self._timeline = ClusterTimeline(nodes, state_events, self._windows)

    def leaders(self, time: int) -> list[Reign]:
        """Return who claimed to lead at a moment, the highest epoch first."""
        there = [
            reign
            for reign in self._reigns
            if reign.start is not None
            and reign.start <= time
            and (reign.end is None or time <= reign.end)
        ]
        return sorted(there, key=lambda reign: -reign.epoch)

    def deposed(self, node: str, time: int) -> tuple[Reign, Reign] | None:
        """Return the reign of a node that another one had replaced by then, and the newer one.

        Seen from outside there is one leader at a time, so nothing can be said.
        """
        there = self.leaders(time) if self._stated else []
        own = next((reign for reign in there if reign.node == node), None)
        if own is None or there[0].epoch == own.epoch:
            return None
        return own, there[0]

    def of(self, node: str, time: int) -> list[str]:
        """Return phrases on a node at a moment: its role, and the faults in force for it."""
        role = self._role(node, time)
        in_force = (_harm(window, node) for window in self._in_force(node, time))
        faults = [*dict.fromkeys(in_force)][-_FAULTS_NAMED_MAX:]
        if role is None:
            return faults
        # A deposed leader is told after what kept the news from it.
        return [*faults, role] if role.startswith("still") else [role, *faults]

    def _role(self, node: str, time: int) -> str | None:
        if (replaced := self.deposed(node, time)) is not None:
            return f"still acting as leader of epoch {replaced[0].epoch}"
        own = next((reign for reign in self.leaders(time) if reign.node == node), None)
        if own is not None:
            seen = "" if self._stated else "seen as "
            return f"{seen}leader of epoch {own.epoch}"
        standing = self._timeline.standing(node, time, _NO_FAULT)
        if standing.role not in _TOLD:
            return None
        return f"{standing.role} in epoch {standing.epoch}"

    def _in_force(self, node: str, time: int) -> list[FaultWindow]:
        return [
            window
            for window in self._windows
            if window.verified
            and not window.spared
            and node in window.nodes
            and window.start <= time
            # A world ends with its violation, which comes after its last event.
            and (time <= window.end or not window.healed)
        ]

    def subject(self, step: Step) -> str | None:
        """Return the subject of a step's sentence; None where its node is not known."""
        if step.node is None:
            return None
        phrases = self.of(step.node, step.time)
        return f"{step.node}, {' and '.join(phrases)}," if phrases else step.node


def _harm(window: FaultWindow, node: str) -> str:
    """Return which fault a node is under, and since when."""
    how = "hit by"
    if window.kind == "partition":
        # A half may well be a majority that goes on.
        how = "cut off by" if window.nodes == (node,) else "on one side of"
    return f"{how} `{window.kind}` since {window.start / _NS_PER_S:.1f} s"


def with_circumstances(
    results: Iterable[CheckResult],
    operations: Sequence[PairedOperation],
    circumstances: Circumstances,
) -> list[CheckResult]:
    """Return results with the circumstances in the accounts of their violations."""
    by_index: dict[int, PairedOperation] = {}
    joined: list[CheckResult] = []
    for result in results:
        if result.verdict is Verdict.INVALID and result.violations:
            by_index = by_index or {operation.index: operation for operation in operations}
            violations = tuple(
                _joined(result.checker, violation, by_index, circumstances)
                for violation in result.violations
            )
            joined.append(msgspec.structs.replace(result, violations=violations))
        else:
            joined.append(result)
    return joined


def _joined(
    checker: str,
    violation: Mapping[str, Any],
    operations: Mapping[int, PairedOperation],
    circumstances: Circumstances,
) -> dict[str, Any]:
    """Return a violation with its account in its circumstances.

    ``overlap``, the two reigns, is added where a leader answered that had been replaced.
    """
    steps = steps_in(violation)
    overlap = _overlap(steps, circumstances)
    if steps:
        more = _led_then(steps, overlap, circumstances)
        name = str(violation.get("anomaly"))
        account = tell(name, steps, circumstances.subject, timed=True, more=more)
    else:
        told = _answer_of(violation, operations)
        overlap = _overlap(told or _moment_of(violation), circumstances)
        sentence = str(violation.get("sentence", ""))
        context = _context(violation, told, circumstances)
        if not context:
            return dict(violation)
        account = f"{with_name_before(checker, violation, sentence)} {context}"
    joined = {**violation, "account": account}
    return joined | ({"overlap": [*map(msgspec.to_builtins, overlap)]} if overlap else {})


def _overlap(steps: Sequence[Step], circumstances: Circumstances) -> tuple[Reign, Reign] | None:
    for step in reversed(steps):
        if step.node is not None and (found := circumstances.deposed(step.node, step.time)):
            return found
    return None


def _led_then(
    steps: Sequence[Step], overlap: tuple[Reign, Reign] | None, circumstances: Circumstances
) -> str:
    """Return a sentence on the newest leader at the last answer; empty where it is told already."""
    there = circumstances.leaders(steps[-1].time)
    if overlap is not None and not there:
        there = [overlap[1]]
    if not there or steps[-1].node is None:
        return ""
    newest = there[0]
    told = any(
        step.node == newest.node and newest in circumstances.leaders(step.time) for step in steps
    )
    return "" if told else f"{newest.node} led epoch {newest.epoch} by then."


def _answer_of(
    violation: Mapping[str, Any], operations: Mapping[int, PairedOperation]
) -> list[Step]:
    """Return the first answered operation that another checker's violation names."""
    named = [violation.get("operation")]
    several = violation.get("operations")
    named += cast("list[object]", several) if isinstance(several, list) else []
    for one in named:
        fields = cast("dict[str, object]", one) if isinstance(one, dict) else {}
        index = fields.get("index")
        operation = operations.get(index) if isinstance(index, int) else None
        if operation is not None and operation.node is not None and operation.end is not None:
            return [step_of(operation)]
    return []


def _moment_of(violation: Mapping[str, Any]) -> list[Step]:
    """Return the node and the moment of a violation that names these, and no operation."""
    node, time = violation.get("node"), violation.get("time")
    if not isinstance(node, str) or not isinstance(time, int):
        return []
    return [Step(-1, -1, node, time, "answered", "")]


def _context(
    violation: Mapping[str, Any], told: Sequence[Step], circumstances: Circumstances
) -> str:
    """Return a sentence on where and when another checker's violation began; empty for nothing."""
    for step in told:
        assert step.node is not None, "only answers of a node are told"
        if circumstances.of(step.node, step.time):
            at = f"{step.time / _NS_PER_S:.3f} s"
            more = _led_then(told, _overlap(told, circumstances), circumstances)
            return f"{circumstances.subject(step)} {step.verb} it at {at}. {more}".rstrip()
    for step in _moment_of(violation):
        assert step.node is not None, "it is what a node did"
        phrases = circumstances.of(step.node, step.time)
        if phrases:
            more = _led_then([step], _overlap([step], circumstances), circumstances)
            return f"{step.node} was then {' and '.join(phrases)}. {more}".rstrip()
    claims = violation.get("leaders")
    if not isinstance(claims, list):
        return ""
    return _of_rivals(cast("list[object]", claims), circumstances)


def _of_rivals(claims: Sequence[object], circumstances: Circumstances) -> str:
    """Return which faults were in force for nodes that led the same epoch."""
    try:
        rivals = msgspec.convert(claims, list[Reign])
    except msgspec.ValidationError:
        return ""
    time = max((reign.start for reign in rivals if reign.start is not None), default=None)
    if time is None:
        return ""
    harmed = [
        (rival.node, [p for p in circumstances.of(rival.node, time) if "`" in p])
        for rival in rivals
    ]
    return " ".join(f"{node} was {' and '.join(faults)}." for node, faults in harmed if faults)
