"""Judge of a history's parts; the entrance to this room.

A caller with many parts hands each to a worker that it can kill (``split``, ``check_part``,
``combine``); for a small history ``check`` does it all.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from splitbrain.checker.anomalies.names import NOT_LINEARIZABLE
from splitbrain.checker.findings import of_key
from splitbrain.checker.linearizability.part.outcome import ELEMENTS, GUIDED, PAIRS, ZONES, Ending
from splitbrain.checker.linearizability.part.parts import (
    Part,
    PartResult,
    combine,
    split,
    undecided_part,
    valid_part,
)
from splitbrain.checker.linearizability.part_source import ObjectSource, narrowed
from splitbrain.checker.linearizability.portfolio import SEARCHES, Decision, Portfolio
from splitbrain.checker.models.model import Model
from splitbrain.checker.models.registry import model_named
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Budget
from splitbrain.history.identity import operation_as_json
from splitbrain.history.records import PairedOperation


def check(operations: Iterable[PairedOperation], model_name: str, budget: Budget) -> CheckResult:
    """Judge a whole history in this process, part after part.

    Raises:
        UsageError: there is no such model, or it does not know an operation of the history.
    """
    parts = split(operations, model_named(model_name))
    return combine([check_part(part, model_name, budget) for part in parts], model_name)


def check_part(part: Part, model_name: str, budget: Budget) -> PartResult:
    """Judge one part, in a worker.

    Raises:
        UsageError: there is no such model.
    """
    model = model_named(model_name)
    source = ObjectSource(part, model)
    decision = Portfolio(source, budget).decide()
    outcome = decision.outcome
    if decision.algorithm == ZONES and outcome.verdict is Verdict.INVALID:
        columns = source.register
        assert columns is not None, "zones judge registers alone"
        around = narrowed(part, columns, decision.values)
        return _invalid_around(part, around, decision.algorithm, model, budget)
    if decision.algorithm == ELEMENTS and outcome.verdict is Verdict.INVALID:
        places = sorted(decision.places)
        around = Part(part.key, tuple(part.operations[place] for place in places))
        return _invalid_around(part, around, decision.algorithm, model, budget)
    if outcome.verdict is Verdict.UNKNOWN:
        figures = _figures(source, decision) if outcome.configurations else {}
        return undecided_part(part.key, len(part.operations), outcome.reason, figures)
    figures = {} if decision.algorithm in (ZONES, ELEMENTS, GUIDED) else _figures(source, decision)
    if outcome.verdict is Verdict.VALID:
        return valid_part(part.key, len(part.operations), decision.algorithm, figures)
    if decision.algorithm == PAIRS:
        violation = _described_pairs(part, decision, model, budget)
    else:
        violation = _described(part, source, decision, budget)
    return _invalid(part, decision.algorithm, _named(violation, part, model), figures)


def _named(violation: dict[str, Any], part: Part, model: Model) -> dict[str, Any]:
    """Add the anomaly's name and its account, from the whole part."""
    from splitbrain.checker.anomalies.naming import with_name

    try:
        return with_name(violation, part.operations, part.failed, model)
    # A defect in naming must not cost the violation.
    except Exception:  # noqa: BLE001
        return {**violation, "anomaly": NOT_LINEARIZABLE}


def _described(
    part: Part, source: ObjectSource, decision: Decision, budget: Budget
) -> dict[str, Any]:
    # Loads networkx: half a second that a valid part need not wait.
    from splitbrain.checker.linearizability.contradictions.violation import describe_violation

    problem = source.repeated if decision.repeated else source.problem
    outcome = decision.outcome
    if decision.place is not None:
        # The unreachable answer is explained, however far a search came.
        rank = problem.place_by_rank.index(decision.place)
        furthest = tuple(end for end in outcome.dead_ends if end.rank == rank)
        outcome = msgspec.structs.replace(outcome, dead_ends=furthest or (Ending(rank, None, ()),))
    return describe_violation(part, problem, outcome, source.model, budget)


def _described_pairs(
    part: Part, decision: Decision, model: Model, budget: Budget
) -> dict[str, Any]:
    """Describe a violation of a queue by the operations that it was narrowed to."""
    if decision.place is None:
        return _no_time_left(part, part, model)
    around = Part(part.key, tuple(part.operations[place] for place in decision.places))
    narrowed = msgspec.structs.replace(decision, place=decision.places.index(decision.place))
    violation = _described(around, ObjectSource(around, model), narrowed, budget)
    others = "Operations on other elements were left out: no order of these needs them."
    return {**violation, "core_meaning": f"{violation['core_meaning']} {others}"}


def _invalid_around(
    part: Part, around: Part, algorithm: str, model: Model, budget: Budget
) -> PartResult:
    """Explain a contradiction found without a search, by a search of the operations around it."""
    source = ObjectSource(around, model)
    decision = Portfolio(source, budget).decide(SEARCHES)
    outcome = decision.outcome
    assert outcome.verdict is not Verdict.VALID, (
        f"{algorithm} and search disagree on key {part.key}"
    )
    if outcome.verdict is Verdict.UNKNOWN:
        violation = _no_time_left(part, around, model)
    else:
        violation = _described(around, source, decision, budget)
    named = _named(violation, part, model)
    return _invalid(part, algorithm, named, _figures(source, decision))


def _no_time_left(part: Part, around: Part, model: Model) -> dict[str, Any]:
    """Describe a violation known by its operations alone."""
    from splitbrain.checker.explanation import NODES_MAX

    sentence = (
        f"{len(around.operations):,} operations{of_key(part.key)} have no order: their values "
        "contradict each other. There was no time left to tell more."
    )
    return {
        "kind": "not-linearizable",
        "model": model.name,
        "key": part.key,
        "sentence": sentence,
        "core": [operation_as_json(o) for o in around.operations[:NODES_MAX]],
        "core_size": len(around.operations),
        "core_minimal": False,
    }


def _invalid(
    part: Part, algorithm: str, violation: dict[str, Any], figures: dict[str, int]
) -> PartResult:
    reason, count = violation["sentence"], len(part.operations)
    return PartResult(part.key, Verdict.INVALID, algorithm, reason, count, figures, violation)


def _figures(source: ObjectSource, decision: Decision) -> dict[str, int]:
    problem = source.repeated if decision.repeated else source.problem
    return {
        "configurations": decision.outcome.configurations,
        "remembered": decision.outcome.remembered,
        "width": problem.width,
        "states": len(problem.transitions.states),
        "open": sum(len(group.starts) for group in problem.groups),
        "open-dropped": problem.open_dropped,
    }
