"""Checkers that judge a run, and those that cannot, each with the reason.

Settled when the run is planned, and written into its plan: a judgement years later asks the same.
"""

from collections.abc import Sequence

from splitbrain.checker.names import COMMITTED_LOGS, STATE_EVENTS, can_judge, evidence_needed
from splitbrain.contracts.scenario import LoadOptions
from splitbrain.contracts.system import ReadsSpeakFor, System
from splitbrain.harness.folder.simulation_outcome import SimulationOutcome
from splitbrain.workloads.workload import Workload, workload


def reads_speak_for(system: System) -> ReadsSpeakFor:
    """For whom the system's reads speak; an adapter older than the question claims nothing."""
    return getattr(system, "reads_speak_for", "member")


def usable_checkers(names: Sequence[str], system: System) -> tuple[str, ...]:
    """Return a workload's checkers, without those whose evidence the system does not give."""
    return tuple(name for name in names if can_judge(name, _declared(system)))


def unusable_checkers(names: Sequence[str], system: System) -> dict[str, str]:
    """Return the others, each with the reason: a clause."""
    words = {
        STATE_EVENTS: "its nodes tell no state events",
        COMMITTED_LOGS: "its data show no committed logs",
    }
    return {
        name: f"system {system.name}: "
        + " and ".join(words[kind] for kind in sorted(evidence_needed(name), reverse=True))
        for name in names
        if not can_judge(name, _declared(system))
    }


def _declared(system: System) -> set[str]:
    """Evidence besides the history that the system promises."""
    declared = {STATE_EVENTS} if system.declares_state_events else set[str]()
    return declared | ({COMMITTED_LOGS} if system.declares_committed_logs else set[str]())


def workload_of(load: LoadOptions) -> Workload:
    """Return the workload of a load, for what it declares.

    Raises:
        UsageError: there is no such workload or option.
    """
    options = dict(load.workload_options)
    return workload(load.workload, seed=0, slots=1, readers=frozenset(), options=options)


def checkers_of(load: LoadOptions) -> tuple[str, ...]:
    """Names of the checkers that judge this load; raises as ``workload_of``."""
    return workload_of(load).checkers


def checkers_not_asked(outcome: SimulationOutcome) -> dict[str, str]:
    """Return the others, each with the reason: a clause.

    Logs of nodes that were never wholly healed prove nothing of what was committed; a world that
    leaves some of them dead is not undecided for that. There the invariants watch every commit.
    Where a disk lied undetectably, Raft promises nothing, and a loss is no finding.
    """
    names = checkers_of(outcome.scenario.load)
    if outcome.lie is not None:
        return dict.fromkeys(names, "a disk lied undetectably, where Raft promises nothing")
    if outcome.has_converged:
        return {}
    reason = "not all nodes were healed and came to agree in this world"
    return {name: reason for name in names if not can_judge(name, {STATE_EVENTS})}
