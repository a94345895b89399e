"""``splitbrain systems check``: whether an adapter keeps what the harness relies on.

The system is run a few times for some seconds: calm, and under a kill, a pause and a partition. Its
clients' outcomes, its recovery, the evidence that it declares and its clean-up are held against the
rules of ``docs/your-system.md``. A violation that the checkers find is told, and convicts the
adapter only where no fault was in force: a system may lose what it does not promise to keep.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.member_digests import NAME as MEMBER_DIGESTS_CHECKER
from splitbrain.checker.names import evidence_needed
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.errors import CapabilityError, HarnessError, UsageError, in_one_line
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.system import System
from splitbrain.contracts.words import counted
from splitbrain.harness.cli.commands import judge_outcome, ready_run
from splitbrain.harness.cli.doctor import Finding, show_findings
from splitbrain.harness.cli.session import judging_session
from splitbrain.harness.console.console_lines import say
from splitbrain.harness.console.standard_streams import write_bytes
from splitbrain.harness.folder.results import (
    CLIENT_OVERDUE,
    EXIT_INVALID,
    EXIT_VALID,
    OVERDUE_HINT,
    Results,
)
from splitbrain.harness.judge.analysis_process import kill_all
from splitbrain.harness.judge.doubted_failures import verdict_with_unknown
from splitbrain.harness.judge.evidence_loader import RunRecord, load_run, read_json_lines
from splitbrain.harness.judge.node_health import AGREEMENT_CHECKER
from splitbrain.harness.pool.limits import MEMORY_BUDGET_MIB, TIME_BUDGET_S, Limits
from splitbrain.harness.run.options import TestOptions
from splitbrain.history.functions import only_reads
from splitbrain.history.records import PairedOperation
from splitbrain.runtimes.registry import sweep_all
from splitbrain.systems.registry import system as make_system
from splitbrain.workloads.workload import workload_names

#: Title of a run and its faults.
_RUNS: Final = {"calm": "none", "kill": "kill", "pause": "pause", "partition": "partition"}
_CALM_S, _FAULT_S = 6.0, 14.0
_TIMEOUT_S: Final = 1.0
#: Share of the calm operations that may fail: a leader may still be chosen when they begin.
_CALM_FAILURES_MAX: Final = 0.02
#: Share of them that may come to an end by their timeout alone: whoever does not lead refuses.
_CALM_LATE_MAX: Final = 0.1
#: An operation that took so much of its time was not refused but not answered.
_LATE: Final = 0.95
_MISREAD: Final = (
    "Without a fault that is the client misreading answers, unless the system gives such answers "
    "by design: then the adapter declares them as allowed"
)
_UNKNOWN_NAME: Final = "no-such-name"


class _Run(msgspec.Struct, frozen=True):
    """One run that has ended and was judged."""

    title: str
    record: RunRecord
    results: Results

    @property
    def is_calm(self) -> bool:
        return self.title == "calm"


def check_system(
    name: str,
    console: Console,
    *,
    runtime: str,
    nodes: int | None,
    settings: Mapping[str, str],
    runs_folder: Path,
    as_json: bool,
) -> int:
    """Run a system, print whether its adapter keeps the rules, and return the exit code.

    Returns:
        0 where nothing speaks against it, 1 where something does.

    Raises:
        UsageError: there is no such system, or the number of nodes or a setting does not fit.
    """
    adapter = make_system(name)
    count = nodes or (3 if 3 in adapter.node_counts else adapter.node_counts[0])
    experiment = Experiment(
        system=name,
        runtime=runtime,
        nodes=count,
        settings=dict(settings),
        operation_timeout_s=_TIMEOUT_S,
        seed=1,
        nemesis="none",
        time_limit_s=_CALM_S,
        # An operation that happened although its client said otherwise shows by its value.
        workload_options={"values": "unique"} if adapter.workloads(None)[0] == "register" else {},
    )
    findings = [*_look_at_options(adapter, experiment)]
    for title, nemesis in _RUNS.items():
        seconds = _CALM_S if nemesis == "none" else _seconds(adapter, experiment)
        wanted = msgspec.structs.replace(experiment, nemesis=nemesis, time_limit_s=seconds)
        if not as_json:
            say(console, f"{title}: a run of {seconds:g} s on {counted(count, 'node')}")
        options = TestOptions(experiment=wanted, runs_folder=runs_folder, keep_data=True)
        found = [*_look_at_run(title, options, name)]
        findings += found
        if title == "calm" and any(finding.answer == "no" for finding in found):
            break  # under faults nothing more would be learnt
    if as_json:
        write_bytes(msgspec.json.format(msgspec.json.encode(findings), indent=2) + b"\n")
    else:
        show_findings(findings, console)
    return EXIT_INVALID if any(finding.answer == "no" for finding in findings) else EXIT_VALID


def _seconds(adapter: System, experiment: Experiment) -> float:
    """Return how long a run must be for a fault that the system notices."""
    adapter.experiment = experiment
    return max(_FAULT_S, 8 + 2 * (adapter.tempo().notices_s or 0))


def _look_at_options(adapter: System, experiment: Experiment) -> Iterator[Finding]:
    """Whether it takes what it says it takes, and refuses the rest in a sentence."""
    adapter.experiment = experiment
    adapter.check_options(experiment)
    unknown = {
        "settings": {**experiment.settings, _UNKNOWN_NAME: "1"},
        "bugs": (_UNKNOWN_NAME,),
    }
    for field, value in unknown.items():
        problem = _refusal_problem(adapter, msgspec.structs.replace(experiment, **{field: value}))
        title, rule = f"unknown {field}", "check_options must raise UsageError for it"
        yield Finding.tried(title, problem, "refused", rule)
    served = [
        name for machine in adapter.state_machines or (None,) for name in adapter.workloads(machine)
    ]
    strange = sorted({*served} - {*workload_names()})
    problem = f"there is no workload {', '.join(strange)}" if strange else None
    rule = "Offer it as an entry point of splitbrain.workloads"
    yield Finding.tried("workloads", problem, ", ".join(dict.fromkeys(served)), rule)


def _refusal_problem(adapter: System, experiment: Experiment) -> str | None:
    adapter.experiment = experiment
    try:
        adapter.check_options(experiment)
    except UsageError:
        return None
    except Exception as error:  # noqa: BLE001 - whatever an adapter raises is told
        return f"it raised {in_one_line(error)}"
    return "it was taken"


def _look_at_run(title: str, options: TestOptions, name: str) -> Iterator[Finding]:
    quiet = Console(quiet=True)
    with judging_session(quiet, kill_all) as session:
        try:
            run = ready_run(options, make_system(name), quiet, session)
        except (UsageError, CapabilityError) as error:
            answer = "no" if title == "calm" else "unknown"
            yield Finding(title, answer, error.problem, error.next_step)
            return
        with session.judging():
            outcome = run()
            problem: str | None = None
            try:
                results = judge_outcome(outcome, session, analyze=False)
                problem = None if outcome.failure is None else str(outcome.failure)
            except HarnessError as error:
                problem = str(error)
                results = None
    if title == "calm" or problem is not None:
        where = f"The run is {outcome.folder.root}"
        yield Finding.tried(f"{title}: the run", problem, "deployed, ready, loaded, ended", where)
    swept = [run for sweep in sweep_all(outcome.folder.lock) for run in sweep.runs]
    left = ", ".join(f"{count} {kind}" for each in swept for kind, count in each.removed.items())
    if left:
        yield Finding(f"{title}: clean-up", "no", f"left behind: {left}", "Start nothing detached")
    if results is None or outcome.interrupted:
        return
    looked_at = _Run(title, load_run(outcome.folder.root), results)
    yield from _look_at_clients(looked_at, make_system(name).conflicts)
    if looked_at.is_calm:
        yield from _look_at_evidence(looked_at, make_system(name))
    else:
        yield from _look_at_faults(looked_at)


def _look_at_clients(run: _Run, conflicts: Collection[str]) -> Iterator[Finding]:
    """Whether the outcomes that the clients told can be believed."""
    operations = [operation for operation in run.record.operations if not operation.final]
    title = f"{run.title}: outcomes"
    late = [operation for operation in operations if _is_late_refusal(operation, run)]
    bad = _violations(run)
    if bad and late and not _violated_by(run, {operation.index for operation in late}):
        detail = (
            f"{counted(len(late), 'change')} without an answer in time called fail, such as "
            f"{late[0].f} of process {late[0].process} ({late[0].error}): taken for unknown, "
            f"all is in order; taken for what they were called: {bad}"
        )
        yield Finding(title, "no", detail, "Say info unless it was never sent")
    elif bad and run.is_calm:
        yield Finding(title, "no", bad, _MISREAD)
    elif bad:
        next_step = "Either the system does that, or its client misreads it"
        yield Finding(title, "unknown", bad, next_step)
    else:
        kinds = Counter(operation.type for operation in operations)
        counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))
        yield Finding(title, "yes", f"{counts or 'no operation'}; no checker found a violation")
    if run.is_calm:
        lost = {
            each.index for each in operations if each.type == "fail" and each.error in conflicts
        }
        yield _successes([each for each in operations if each.index not in lost], run)
        ends = [operation for operation in run.record.operations if operation.final]
        answers = Counter(operation.process for operation in ends if operation.type == "ok")
        asked = Counter(operation.process for operation in ends)
        is_whole = any(answers[process] == asked[process] for process in asked)
        problem = None if is_whole else f"no client had an answer to all: {answers.total()} of them"
        detail = f"{answers.total()} of {len(ends)} answered, all of those of a client among them"
        rule = "Without a fault there must be a node that answers them"
        yield Finding.tried("calm: final reads", problem, detail, rule)


def _successes(operations: Sequence[PairedOperation], run: _Run) -> Finding:
    """Whether clients are served: one that also writes has success, and outcomes are known.

    That nodes which do not lead refuse whoever is pinned to them is no fault of theirs; operations
    that lost a conflict are left out.
    """
    plan, functions = run.record.plan, run.record.functions
    slots = 1 if plan is None else plan.experiment.concurrency
    by_slot: dict[int, list[PairedOperation]] = {}
    for operation in operations:
        by_slot.setdefault(operation.process % slots, []).append(operation)
    shares = [
        sum(operation.type == "ok" for operation in members) / len(members)
        for members in by_slot.values()
        if any(not only_reads(functions, each.f, each.argument) for each in members)
    ]
    best = max(shares, default=0.0)
    unknown = sum(operation.type == "info" for operation in operations) / max(1, len(operations))
    errors = Counter(operation.error for operation in operations if operation.type != "ok")
    named = ", ".join(f"{count} {error}" for error, count in errors.most_common(3))
    # One whose outcome is unknown has no end by which it could be late.
    late = sum(
        each.error == CLIENT_OVERDUE or _is_late(each) for each in operations if each.type != "ok"
    )
    problem: str | None = None
    if late > _CALM_LATE_MAX * len(operations):
        problem = f"{late} of {len(operations)} had no answer in time ({named}). {OVERDUE_HINT}"
    elif best < 1 - _CALM_FAILURES_MAX:
        problem = f"of no client did more than {best:.1%} succeed ({named or 'none was asked'})"
    elif unknown > _CALM_FAILURES_MAX:
        problem = f"of {unknown:.1%} the outcome is unknown ({named})"
    detail = f"{best:.1%} of a client that reads and writes" + (f"; {named}" if named else "")
    return Finding.tried("calm: successes", problem, detail, "Without a fault nearly all must")


def _is_late_refusal(operation: PairedOperation, run: _Run) -> bool:
    functions = run.record.functions
    return (
        operation.type == "fail"
        and not only_reads(functions, operation.f, operation.argument)
        and _is_late(operation)
    )


def _violated_by(run: _Run, unknown: Collection[int]) -> bool:
    """Return whether a checker of the history finds a violation with these operations as info."""
    plan, record = run.record.plan, run.record
    names = [] if plan is None else [name for name in plan.checkers if not evidence_needed(name)]
    evidence = Evidence(tuple(record.operations), functions=dict(record.functions))
    limits = Limits(TIME_BUDGET_S, MEMORY_BUDGET_MIB, jobs=2)
    return verdict_with_unknown(unknown, names, evidence, limits) is Verdict.INVALID


def _is_late(operation: PairedOperation) -> bool:
    took_ns = 0 if operation.end is None else operation.end - operation.start
    return took_ns >= _LATE * _TIMEOUT_S * 1e9


def _violations(run: _Run) -> str:
    found = [each for each in run.results.checkers if each.verdict is Verdict.INVALID]
    if run.is_calm:  # then it is the adapter's digests that are wrong, of which there is a finding
        found = [each for each in found if each.checker != MEMBER_DIGESTS_CHECKER]
    return "; ".join(f"{each.checker}: {each.reason}" for each in found)


def _look_at_faults(run: _Run) -> Iterator[Finding]:
    """Whether its faults bit, and the system came back from them within its tempo."""
    bitten = [fault for fault in run.results.faults if fault.verified]
    if not bitten:
        why = "; ".join(str(fault.evidence) for fault in run.results.faults) or "none was drawn"
        yield Finding(f"{run.title}: recovery", "unknown", f"no fault took effect: {why}")
        return
    late = [fault for fault in bitten if not fault.healed or fault.resumed_ms is None]
    problem: str | None = None
    if late:
        problem = f"{len(late)} of {len(bitten)}: {late[0].evidence}"
    disagreeing = [
        each.reason for each in run.results.checkers if each.checker == AGREEMENT_CHECKER
    ]
    if disagreeing:
        problem = disagreeing[0]
    noticed = sum(fault.noticed is True for fault in bitten)
    detail = f"served again after {counted(len(bitten), 'fault')}, {noticed} of them noticed"
    rule = "If the system takes longer, its tempo must say so; else it does not recover"
    yield Finding.tried(f"{run.title}: recovery", problem, detail, rule)


def _look_at_evidence(run: _Run, adapter: System) -> Iterator[Finding]:
    """Whether what the adapter declares is there, and what it does not declare."""
    plan = run.record.plan
    nodes = () if plan is None else (*plan.nodes, *plan.observers)
    lacking = [node for node in nodes if not run.record.state_events.get(node)]
    yield _declared(
        "state events",
        lacking,
        "who led when is seen from outside",
        is_declared=adapter.declares_state_events,
    )
    lacking = [node for node in nodes if node not in run.record.committed_logs]
    yield _declared(
        "committed logs",
        lacking,
        "lost-commits cannot judge",
        is_declared=adapter.declares_committed_logs,
    )
    if adapter.declares_replica_logs and plan is not None:
        read = {node for replicas in run.record.replica_logs.values() for node in replicas}
        lacking = [node for node in plan.nodes if node not in read]
        yield _declared("replicas", lacking, "", is_declared=True)
    yield _look_at_digests(run, nodes, adapter)
    named = {sighting.leader for sighting in run.record.sightings} - {None}
    strangers = sorted(str(name) for name in named - {*nodes})
    if not adapter.names_leaders:
        detail = "not told: faults without a target hit one node by chance"
        yield Finding("evidence: leader", "unknown", detail)
    else:
        problem = f"it named {', '.join(strangers)}, no node" if strangers else None
        problem = problem or (None if named else "it named nobody while clients were served")
        rule = "leader must return one of the runtime's nodes"
        yield Finding.tried("evidence: leader", problem, ", ".join(sorted(map(str, named))), rule)
    if type(adapter).metrics is not System.metrics:
        rows = read_json_lines(run.record.folder.metrics, dict[str, Any], [])
        told = {str(row["node"]) for row in rows if row.get("system")}
        silent = [node for node in nodes if node not in told]
        problem = f"none of {', '.join(silent)}" if silent else None
        rule = "metrics must answer within its time"
        yield Finding.tried("evidence: figures", problem, "of every node", rule)


def _look_at_digests(run: _Run, nodes: Sequence[str], adapter: System) -> Finding:
    """Whether all members told digests in the end, and of a calm run equal ones."""
    last = {answer.node: answer.told for answer in run.record.digests if answer.final}
    lacking = [node for node in nodes if last.get(node) is None]
    without = "members that diverge are seen by their answers alone"
    found = _declared("member digests", lacking, without, is_declared=adapter.declares_digests)
    judged = [each for each in run.results.checkers if each.checker == MEMBER_DIGESTS_CHECKER]
    if not judged or judged[0].verdict is Verdict.VALID:
        return found
    rule = "Digest and position must be of one moment, and the scope must tell what is comparable"
    return Finding.tried(found.name, judged[0].reason, "", rule)


def _declared(what: str, lacking: Sequence[str], without: str, *, is_declared: bool) -> Finding:
    title = f"evidence: {what}"
    if not is_declared:
        return Finding(title, "unknown", f"not declared: {without}")
    problem = f"none of {', '.join(lacking)}" if lacking else None
    return Finding.tried(title, problem, "of every node", "It is declared, and must be there")
