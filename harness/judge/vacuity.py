"""Reasons why a run proves nothing although no checker complains.

A green run in which no fault took effect, nothing was in flight or nothing was committed afterwards
is worse than a red one: it is believed. A violation stands above them. Source: design, section 5.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from splitbrain.contracts.names import NO_EPOCH
from splitbrain.contracts.runtime import SIMULATED
from splitbrain.contracts.state_event import StateEvent
from splitbrain.contracts.words import counted
from splitbrain.harness.folder.results import FaultResult
from splitbrain.harness.judge.evidence_loader import RunRecord
from splitbrain.history.fault_windows import FaultWindow
from splitbrain.history.functions import Functions, effect_of
from splitbrain.history.records import PairedOperation

#: Least successful operations of each kind, final reads apart.
OK_COUNT_MIN = 20


def vacuous_reasons(record: RunRecord, faults: Sequence[FaultResult]) -> tuple[str, ...]:
    """Return every reason why the run proves nothing, one sentence each; empty if there is none."""
    windows = record.windows
    declares = record.plan.declares_state_events if record.plan else bool(record.state_events)
    reasons = [
        too_few_faults_bit(faults),
        no_operation_met_a_fault(windows, record.operations),
        nothing_committed_after_last_heal(windows, record.operations, record.functions),
        *_too_few_results(record),
        state_events_missing(record.state_events, record.operations, record.functions)
        if declares
        else None,
    ]
    planned = record.plan.planned_faults if record.plan else 0
    if planned > len(faults):
        reasons.insert(
            0, f"The plan has {counted(planned, 'fault')}, the run folder knows of {len(faults)}."
        )
    return tuple(reason for reason in reasons if reason is not None)


def _too_few_results(record: RunRecord) -> list[str]:
    plan = record.plan
    if plan is not None and plan.driven_by is not None:
        return test_without_results(record.operations)
    reasons = kinds_without_results(record.operations)
    if plan is not None and plan.experiment.runtime == SIMULATED:
        return reasons
    hint = few_answers(record.operations)
    return [*reasons, hint] if reasons and hint else reasons


def too_few_faults_bit(faults: Sequence[FaultResult]) -> str | None:
    """Return a reason if fewer than half of the applicable faults bit."""
    if not faults:
        return None
    # A fault that was never reached could have applied: a run that died early is not excused.
    could_apply = [fault for fault in faults if fault.applied or fault.at_ms is None]
    bitten = sum(fault.verified for fault in could_apply)
    if not bitten:
        if len(faults) == 1:
            return "The only planned fault had no effect."
        return f"None of the {len(faults)} planned faults took effect."
    if bitten * 2 < len(could_apply):
        return f"Only {bitten} of the {len(could_apply)} faults that could apply took effect."
    return None


def no_operation_met_a_fault(
    windows: Sequence[FaultWindow], operations: Sequence[PairedOperation]
) -> str | None:
    """Return a reason if no fault that bit met an operation in flight."""
    bitten = [window for window in windows if window.verified]
    if not bitten:
        return None  # too_few_faults_bit covers it
    for window in bitten:
        for operation in operations:
            is_open = operation.end is None or operation.end > window.start
            if operation.start < window.end and is_open:
                return None
    return "No fault hit an operation in flight."


def nothing_committed_after_last_heal(
    windows: Sequence[FaultWindow], operations: Sequence[PairedOperation], functions: Functions
) -> str | None:
    """Return a reason if no write invoked after the last heal was acknowledged."""
    if not windows:
        return None
    unhealed = next((window for window in windows if not window.healed), None)
    if unhealed is not None:
        return (
            f"Fault {unhealed.index} ({unhealed.kind}) was never seen to be healed, "
            "so nothing is known to work again."
        )
    last_heal = max(window.end for window in windows)
    acknowledged = [
        operation
        for operation in operations
        if operation.type == "ok" and operation.start >= last_heal
    ]
    if any(_is_change(operation, functions) for operation in acknowledged):
        return None
    undeclared = sorted({operation.f for operation in acknowledged} - functions.keys())
    if undeclared:
        return (
            f"Nothing tells whether {', '.join(undeclared)} changed anything after the last heal: "
            "the plan does not declare what they do."
        )
    return "No write that was invoked after the last heal was acknowledged."


def kinds_without_results(operations: Sequence[PairedOperation]) -> list[str]:
    """Return a reason for each kind of operation, final reads apart, with too few successes."""
    load = [operation for operation in operations if not operation.final]
    if not load:
        return ["The clients invoked no operation."]
    succeeded = Counter(operation.f for operation in load if operation.type == "ok")
    return [
        f"Only {counted(succeeded[kind], 'operation')} of kind {kind} succeeded, "
        f"{OK_COUNT_MIN} are needed."
        for kind in sorted({operation.f for operation in load})
        if succeeded[kind] < OK_COUNT_MIN
    ]


def few_answers(operations: Sequence[PairedOperation]) -> str | None:
    """Return a hint if a kind of the load never succeeded, and most of the load failed."""
    load = [operation for operation in operations if not operation.final]
    succeeded = [operation.f for operation in load if operation.type == "ok"]
    if len(succeeded) * 2 >= len(load) or {*succeeded} == {operation.f for operation in load}:
        return None
    errors = Counter(operation.error or operation.type for operation in load)
    del errors["ok"]
    listed = ", ".join(f"{error} {count}" for error, count in errors.most_common(2))
    return (
        f"Most operations failed or got no answer ({listed}); where machine or system are too slow "
        "for the load, a lower --rate or a longer --operation-timeout helps."
    )


def test_without_results(operations: Sequence[PairedOperation]) -> list[str]:
    """Return a reason if nothing succeeded in a run whose steps are those of a user's test.

    It asks each thing once, and asserts itself what must succeed.
    """
    if any(operation.type == "ok" and not operation.final for operation in operations):
        return []
    return ["No operation of the test succeeded."]


def state_events_missing(
    state_events: Mapping[str, Sequence[StateEvent]],
    operations: Sequence[PairedOperation],
    functions: Functions,
) -> str | None:
    """Return a reason if writes were acknowledged in an epoch without a node leading it."""
    led = {
        event.epoch
        for events in state_events.values()
        for event in events
        if event.kind == "role" and event.role == "leader"
    }
    acknowledged = {
        operation.position[0]
        for operation in operations
        if operation.position is not None
        and operation.position[0] != NO_EPOCH
        and _is_change(operation, functions)
    }
    if not state_events and any(_is_change(operation, functions) for operation in operations):
        return "The system promises state events and wrote none."
    missing = sorted(acknowledged - led)
    if not missing:
        return None
    listed = ", ".join(map(str, missing[:5]))
    return f"No node claimed to lead in epoch {listed}, in which writes were acknowledged."


def _is_change(operation: PairedOperation, functions: Functions) -> bool:
    if operation.type != "ok":
        return False
    effect = effect_of(functions, operation.f, operation.argument, operation.result)
    return effect in ("changes", "records")
