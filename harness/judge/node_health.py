"""Judgement of the nodes: their own conduct (exits, fatal errors, logs) and their agreement.

An exit is a failure of the system unless a recorded fault on that node asks for it and the stated
reason is the fault's; a traceback always is one, and so is a line that the system's own patterns
call a defect, but for what they call harmless. Sources within the run folder, the most trusted
first: the watch over the nodes (``phases.jsonl``), state events (restarts, ``fatal``, ``stopped``)
and fault windows, the nodes' logs. A node without any trace is ``unknown``, never healthy; where
the record of faults is damaged, nobody is blamed.

Nodes that disagree although every fault was healed make a finding of its own: a read from one no
longer speaks for the others. It is ``unknown``, since they may only be slow, but where the run
promises a recovery within a time. Sources: design, section 5 (verdicts); issue 18, section 4.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.log_pattern import LogPattern
from splitbrain.contracts.runtime import KILLED_CODE
from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.folder.plan_checkers import reads_speak_for
from splitbrain.harness.folder.results import NODE_CHECKER
from splitbrain.harness.judge.evidence_loader import RunRecord
from splitbrain.harness.judge.last_words import LastWords, last_words, node_logs
from splitbrain.harness.judge.log_defects import log_defects
from splitbrain.history.fault_windows import FaultWindow
from splitbrain.systems.registry import system

AGREEMENT_CHECKER: Final = "convergence"
#: A state event is stamped when the harness reads it, a fault when it is asked for.
_STAMP_SLACK_NS = 2_000_000_000
_VIOLATIONS_MAX = 20


def judge_nodes(record: RunRecord) -> CheckResult:
    """Judge every node of a run."""
    windows = record.windows
    load_end = record.events[-1].time if record.events else 0
    violations: list[dict[str, Any]] = []
    unexplained: list[dict[str, Any]] = []
    restarts = 0
    # A failure of the harness or its environment may be the cause of later exits.
    failures = (phase.since for phase in record.phases if phase.since is not None)
    failed = min(failures, default=None)
    for node in record.node_names:
        events = record.state_events.get(node, [])
        restarts += len({event.incarnation for event in events} - {0})
        ended = list(_watched_exits(record, node, windows))
        known = bool(ended) or record.knows_its_faults
        # When everything heals, a world replaces a node whose disk has rotted.
        staying = [window for window in windows if record.is_simulated and window.traits.stays]
        replaced = [window.start for window in staying if node in window.nodes]
        ended = ended or list(_exits(node, events, windows, load_end, min(replaced, default=None)))
        for exit_ in ended:
            blames = known and (failed is None or (exit_["time"] or 0) < failed)
            (violations if blames else unexplained).append(exit_)
        folder = record.folder.root / "nodes" / node
        violations += log_defects(node, folder, _patterns(record), windows)
    silent = [
        node
        for node in record.node_names
        if not record.state_events.get(node)
        and not any(node_logs(record.folder.root / "nodes" / node))
    ]
    result = _result(record.node_names, violations, silent, restarts)
    if result.verdict is not Verdict.INVALID and unexplained:
        why = (
            "it came after the harness or its environment had failed"
            if record.knows_its_faults
            else "faults.jsonl is damaged"
        )
        reason = f"Nobody is blamed, since {why}: {unexplained[0]['sentence']}"
        return _without_blame(result, reason, unexplained)
    if violations and record.phases and not record.reached("load-started"):
        # A set-up that cannot work says nothing of the system.
        return _without_blame(result, f"The cluster never served. {result.reason}", violations)
    return result


def _without_blame(
    result: CheckResult, reason: str, found: Sequence[dict[str, Any]]
) -> CheckResult:
    return msgspec.structs.replace(
        result,
        verdict=Verdict.UNKNOWN,
        reason=reason,
        violations=(),
        observations=tuple(found[:_VIOLATIONS_MAX]),
    )


def _result(
    nodes: Sequence[str], violations: list[dict[str, Any]], silent: Sequence[str], restarts: int
) -> CheckResult:
    figures = {"nodes": len(nodes), "restarts": restarts}
    verdict, reason = Verdict.VALID, "No node ended by itself and none wrote a traceback."
    if violations:
        verdict, reason = Verdict.INVALID, str(violations[0]["sentence"])
        if len(violations) > 1:
            reason += f" ({len(violations) - 1} more.)"
    elif not nodes or silent:
        verdict = Verdict.UNKNOWN
        reason = f"Nothing is known of {', '.join(silent) or 'the nodes'}: no log, no state event."
    return CheckResult(
        NODE_CHECKER, verdict, reason, figures, violations=tuple(violations[:_VIOLATIONS_MAX])
    )


def _watched_exits(
    record: RunRecord, node: str, windows: Sequence[FaultWindow]
) -> Iterator[dict[str, Any]]:
    """Yield exits that the harness saw and that no fault in force on the node explains."""
    events = record.state_events.get(node, [])
    for phase in record.phases:
        if phase.phase != "node-exited" or phase.node != node:
            continue
        why = _stated_reason(events, phase.time) or phase.detail
        ending = last_words(record.folder.root, node, phase.exit_code, _patterns(record))
        if ending is not None and not ending.is_recognised:
            # The log's end may be another life's, and adds nothing to a stated reason.
            is_other = _has_lived_since(record, windows, node, phase.time)
            ending = None if is_other or why else ending
        stated = why
        if not why and ending is not None and ending.is_recognised:
            stated = f"{ending.text} {ending.whole_line}"
        asking = _asking(windows, node, phase.time)
        if asking and _fits(asking, stated, phase.exit_code):
            continue
        code = "an unknown exit code" if phase.exit_code is None else f"exit code {phase.exit_code}"
        what = f"ended by itself with {code}" + (f" ({why})" if why else "")
        yield _with_ending(
            _violation("node-exited", node, phase.time, what + _despite(asking)), ending
        )


def _patterns(record: RunRecord) -> Sequence[LogPattern]:
    return () if record.plan is None else record.plan.log_patterns


def _has_lived_since(
    record: RunRecord, windows: Sequence[FaultWindow], node: str, time: int
) -> bool:
    events = record.state_events.get(node, [])
    before = max((event.incarnation for event in events if (event.time or 0) <= time), default=0)
    if any(event.incarnation > before for event in events):
        return True
    return any(
        window.may_end_processes and node in window.nodes and window.end > time
        for window in windows
    )


def _with_ending(violation: dict[str, Any], ending: LastWords | None) -> dict[str, Any]:
    if ending is None:
        return violation
    says = ending.text if ending.is_recognised else f"its log ends with {ending.text!r}"
    sentence = f"{violation['sentence'].rstrip('.')}: {says} ({ending.place})."
    return {**violation, "sentence": sentence, "words": ending.text, "place": ending.place}


def _stated_reason(events: Sequence[StateEvent], time: int) -> str | None:
    life = max((event.incarnation for event in events if (event.time or 0) <= time), default=0)
    fatal = (event for event in events if event.kind == "fatal" and event.incarnation == life)
    return next((event.reason for event in fatal if event.reason), None)


def _exits(
    node: str,
    events: Sequence[StateEvent],
    windows: Sequence[FaultWindow],
    load_end: int,
    replaced_from: int | None,
) -> Iterator[dict[str, Any]]:
    """Yield ends of the node's process that no fault on that node explains."""
    mine = [window for window in windows if node in window.nodes]
    ending = [window for window in mine if window.may_end_processes]
    starving = [window for window in mine if window.traits.starves]
    ended: set[int] = set()
    previous: StateEvent | None = None
    for event in events:
        asking = _asking(windows, node, event.time)
        # A node that says why it ends was not killed by the kernel.
        excused = bool(asking) and _fits(asking, event.reason or "", None)
        if event.kind == "fatal":
            ended.add(event.incarnation)
            if not excused:
                what = f"stopped with a fatal error: {event.reason}{_despite(asking)}"
                yield _violation("node-fatal", node, event.time, what)
        elif (
            event.kind == "stopped"
            and event.incarnation not in ended
            and (event.time or 0) < load_end
            and not _explained(ending, event.time)
        ):
            ended.add(event.incarnation)
            if not excused:
                why = event.reason or "no reason given"
                what = f"stopped by itself: {why}{_despite(asking)}"
                yield _violation("node-exited", node, event.time, what)
        elif (
            previous is not None
            and event.incarnation > previous.incarnation
            and previous.incarnation not in ended
            and not _ended_between([*ending, *starving], previous.time, event.time)
            and (replaced_from is None or (event.time or 0) < replaced_from)
        ):
            what = "was started again though no fault ended it"
            yield _violation("node-exited", node, event.time, what)
        previous = event


def _asking(windows: Sequence[FaultWindow], node: str, time: int | None) -> list[FaultWindow]:
    """Return faults that ask the node to end: in force, or gone and with a bad disk left behind."""
    # A node that a busy machine starts slowly reads late the damage that a healed fault left.
    return [
        window
        for window in windows
        if window.traits.reasons
        and node in window.nodes
        and (
            _explained([window], time)
            or (window.traits.stays and time is not None and time >= window.start)
        )
    ]


def _fits(asking: Sequence[FaultWindow], reason: str | None, exit_code: int | None) -> bool:
    """Return whether the node states a reason of one of the faults; a killed one states none.

    The exit code is lost where the fault has started the node again before anybody looked.
    """
    if reason is None:
        starves = any(window.traits.starves for window in asking)
        return starves and exit_code in (None, KILLED_CODE)
    stated = reason.casefold()
    return any(word in stated for window in asking for word in window.traits.reasons)


def _despite(asking: Sequence[FaultWindow]) -> str:
    return f", which is not the reason that {asking[0].kind} gives" if asking else ""


def _ended_between(ending: Sequence[FaultWindow], last: int | None, first: int | None) -> bool:
    """Return whether a fault was in force between a life's last event and the next one's first.

    On a busy machine a node's first event comes long after its start.
    """
    if last is None or first is None:
        return True
    slack = _STAMP_SLACK_NS
    return any(w.start - slack <= first and last <= w.end + slack for w in ending)


def _explained(ending: Sequence[FaultWindow], time: int | None) -> bool:
    return _ended_between(ending, time, time)


def _violation(kind: str, node: str, time: int | None, what: str) -> dict[str, Any]:
    when = "" if time is None else f" {time / 1e9:.3f} s into the run"
    return {"kind": kind, "node": node, "time": time, "sentence": f"Node {node} {what}{when}."}


def disagreement(record: RunRecord) -> str | None:
    """Return one sentence on why the nodes did not agree; None where they did or were not asked."""
    details = [phase.detail for phase in record.phases if phase.phase == "not-converged"]
    if not details:
        return None
    return (
        f"The nodes did not come to agree: {(details[-1] or 'the reason is unknown').rstrip('.')}."
    )


def is_agreement_judged(record: RunRecord) -> bool:
    """Return whether the nodes had their time once every fault was healed, and it tells something.

    That they did not agree in it tells something, that they did only where they promised to. In a
    simulated world INV-40 to INV-42 hold them to a promise.
    """
    if record.reached("interrupted") or not record.reached("healed"):
        return False
    if disagreement(record) is not None:
        return True
    if record.is_simulated or record.plan is None or not record.reached("converged"):
        return False
    return record.plan.experiment.recovery_limit_s is not None


def judge_convergence(record: RunRecord) -> CheckResult:
    """Return the finding on nodes that did not agree, or that promised to within a time."""
    plan, differs = record.plan, disagreement(record)
    limit_s = None if plan is None else plan.experiment.recovery_limit_s
    if limit_s is None:
        reason = f"All faults were healed. {differs}"
        return CheckResult(AGREEMENT_CHECKER, Verdict.UNKNOWN, reason)
    times = {phase.phase: phase.time for phase in record.phases}
    since, until = times["healed"], times["converged" if differs is None else "not-converged"]
    took_s = (until - since) / 1e9
    how = f"The nodes agreed after {took_s:.1f} s." if differs is None else differs
    reason = f"All faults were healed, and agreement was promised within {limit_s:g} s. {how}"
    if differs is None and took_s <= limit_s:
        figures = {"agreed_after_s": round(took_s, 3)}
        return CheckResult(AGREEMENT_CHECKER, Verdict.VALID, reason, figures)
    unhealed = not record.knows_its_faults or not all(window.healed for window in record.windows)
    if unhealed or took_s < limit_s:
        lacks = "not all faults are known to be healed" if unhealed else "they had less time"
        reason = f"Whether the nodes keep their promise to recover is not known, since {lacks}."
        return CheckResult(AGREEMENT_CHECKER, Verdict.UNKNOWN, reason)
    violation = {"kind": "not-recovered", "time": since, "sentence": reason}
    return CheckResult(AGREEMENT_CHECKER, Verdict.INVALID, reason, violations=(violation,))


def single_holders(record: RunRecord, *, converged: bool) -> frozenset[str]:
    """Return nodes each of which may hold what no other does; none where one answer speaks for all.

    An observer's records are not the cluster's: it has no vote.
    """
    plan = record.plan
    claimed = None if plan is None else plan.reads_speak_for
    # Plans of earlier versions leave it out; their adapters declare it.
    if claimed is None and plan is not None:
        with suppress(UsageError):
            claimed = reads_speak_for(system(plan.experiment.system))
    if claimed == "cluster" or (claimed == "converged" and converged):
        return frozenset()
    return frozenset(record.node_names) - frozenset(record.observers)
