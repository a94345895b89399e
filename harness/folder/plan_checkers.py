"""Checkers that judge a run, and those that cannot, each with the reason.

Settled when the run is planned, and written into its plan: a judgement years later asks the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from splitbrain.checker.names import (
    COMMITTED_LOGS,
    MEMBER_DIGESTS,
    REPLICA_LOGS,
    STATE_EVENTS,
    can_judge,
    checker_names,
    evidence_needed,
    violation_kinds,
)
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.runtime import SIMULATED
from splitbrain.contracts.scenario import LoadOptions
from splitbrain.contracts.state_event import Resigning
from splitbrain.contracts.system import AllowedAnomaly, ReadsSpeakFor, System
from splitbrain.harness.folder.simulation_outcome import SimulationOutcome
from splitbrain.workloads.workload import Workload, workload

_SESSIONS: Final = "broker-sessions"
_DEPOSED: Final = "deposed-leaders"
_Options = TypeVar("_Options", bound=msgspec.Struct)


class _Sessions(msgspec.Struct, frozen=True):
    """Options of the checker of sessions."""

    session_ms: int


def reads_speak_for(system: System) -> ReadsSpeakFor:
    """For whom the system's reads speak; an adapter older than the question claims nothing."""
    return getattr(system, "reads_speak_for", "member")


def own_checkers(system: System, experiment: Experiment) -> tuple[str, ...]:
    """Return the checkers that judge a run for what its system tells, whatever the workload.

    A single member has nobody to be compared with. In a simulated world nobody asks members: the
    invariants compare them (INV-18), and hold sessions to what was sent (INV-62).
    """
    if experiment.runtime == SIMULATED:
        return ()
    members = experiment.nodes + len(system.observers(experiment))
    compares = system.declares_digests and members > 1
    has_sessions = system.session_ms(experiment) is not None
    return (
        *(("member-digests",) if compares else ()),
        *(("replicas",) if system.declares_replica_logs else ()),
        *((_SESSIONS,) if has_sessions else ()),
        *(() if _resigning(system) is None else (_DEPOSED,)),
    )


def checker_options(system: System, experiment: Experiment) -> dict[str, Any]:
    """Return what checkers must know of the system besides the evidence, by their names."""
    session_ms = system.session_ms(experiment)
    found: dict[str, Any] = (
        {} if session_ms is None else {_SESSIONS: msgspec.to_builtins(_Sessions(session_ms))}
    )
    resigning = _resigning(system)
    return found if resigning is None else {**found, _DEPOSED: msgspec.to_builtins(resigning)}


def session_ms_of(options: Mapping[str, Any]) -> int | None:
    """Return how long a plan's ``checker_options`` say that a session lasts, milliseconds."""
    sessions = _options_of(options, _SESSIONS, _Sessions)
    return None if sessions is None else sessions.session_ms


def resigning_of(options: Mapping[str, Any]) -> Resigning | None:
    """Return what a plan's ``checker_options`` say of leaders that were deposed."""
    return _options_of(options, _DEPOSED, Resigning)


def _options_of(options: Mapping[str, Any], checker: str, kind: type[_Options]) -> _Options | None:
    """Return the options of a checker; None where there are none that make sense."""
    try:
        return msgspec.convert(options.get(checker), kind)
    except msgspec.ValidationError:
        return None


def _resigning(system: System) -> Resigning | None:
    return system.resigning if system.declares_state_events else None


def allowed_anomalies(system: System) -> tuple[AllowedAnomaly, ...]:
    """Return what the system documents.

    Raises:
        UsageError: there is no such checker, or it finds no violations of that kind.
    """
    allowed = tuple(system.allowed())
    for anomaly in allowed:
        kinds = violation_kinds(anomaly.checker)
        if kinds is None:
            raise UsageError(
                f"{system.name} allows an anomaly of the checker {anomaly.checker!r}, "
                "which does not exist",
                or_nearest(anomaly.checker, checker_names(), "checkers"),
            )
        if kinds and anomaly.kind not in kinds:
            raise UsageError(
                f"{system.name} allows {anomaly.kind!r} of {anomaly.checker}, which finds no such "
                "violations",
                f"Its kinds are: {', '.join(kinds)}",
            )
    return allowed


def usable_checkers(names: Sequence[str], system: System) -> tuple[str, ...]:
    """Return a workload's checkers, without those whose evidence the system does not give."""
    return tuple(name for name in names if can_judge(name, declared_evidence(system)))


def unusable_checkers(names: Sequence[str], system: System) -> dict[str, str]:
    """Return the others, each with the reason: a clause."""
    words = {
        STATE_EVENTS: "its nodes tell no state events",
        COMMITTED_LOGS: "its data show no committed logs",
        MEMBER_DIGESTS: "its members tell no digests",
        REPLICA_LOGS: "its data show no replicas",
    }
    return {
        name: f"system {system.name}: "
        + " and ".join(words[kind] for kind in sorted(evidence_needed(name), reverse=True))
        for name in names
        if not can_judge(name, declared_evidence(system))
    }


def declared_evidence(system: System) -> set[str]:
    """Return the kinds of evidence besides the history that the system promises."""
    kinds = {
        STATE_EVENTS: system.declares_state_events,
        COMMITTED_LOGS: system.declares_committed_logs,
        MEMBER_DIGESTS: system.declares_digests,
        REPLICA_LOGS: system.declares_replica_logs,
    }
    return {kind for kind, is_declared in kinds.items() if is_declared}


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
