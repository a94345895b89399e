"""Judges parts of a history; the door to this room.

A caller with many parts hands each to a worker that it can kill (``split``, ``check_part``,
``combine``); a caller with little asks ``check``. A budget that ends gives ``unknown`` with the
reason, never ``valid``.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from checker.linearizability.algorithms import EXACT, GUIDED, ZONES
from checker.linearizability.guided import order_by_positions
from checker.linearizability.outcome import Outcome
from checker.linearizability.part_registers import without_order
from checker.linearizability.parts import Part, PartResult, combine, split
from checker.linearizability.portfolio import Portfolio
from checker.linearizability.problem import Problem
from checker.models.model import Model
from checker.models.registry import model_named
from checker.verdict import CheckResult, Verdict
from contracts.budget import Budget
from history.records import PairedOperation


def check(operations: Iterable[PairedOperation], model_name: str, budget: Budget) -> CheckResult:
    """Judge a whole history in this process, part after part.

    Raises:
        UsageError: there is no such model, or it does not know an operation of the history.
    """
    parts = split(operations, model_named(model_name))
    return combine([check_part(part, model_name, budget) for part in parts], model_name)


def check_part(part: Part, model_name: str, budget: Budget) -> PartResult:
    """Judge one part; what a worker does.

    Raises:
        UsageError: there is no such model.
    """
    model = model_named(model_name)
    reason = budget.exhausted()
    if reason is not None:
        return _undecided(part, reason, {})
    narrowed = without_order(part, model)
    if narrowed is False:
        return _valid(part, ZONES, {})
    if isinstance(narrowed, Part):
        return _invalid_by_zones(part, narrowed, model, budget)
    if order_by_positions(part.operations, model) is not None:
        return _valid(part, GUIDED, {})
    decision = Portfolio(part, model, budget).decide()
    problem, outcome = decision.problem, decision.outcome
    figures = _figures(problem, outcome)
    if outcome.verdict is Verdict.UNKNOWN:
        return _undecided(part, outcome.reason or "no reason given", figures)
    if outcome.verdict is Verdict.VALID:
        return _valid(part, decision.algorithm, figures)
    # What explains loads the library of graphs: half a second that a valid part need not wait.
    from checker.linearizability.violation import describe_violation

    violation = describe_violation(part, problem, outcome, model, budget)
    return _invalid(part, decision.algorithm, violation, figures)


def _invalid_by_zones(part: Part, narrowed: Part, model: Model, budget: Budget) -> PartResult:
    """Explain what zones found by a search of the operations around it."""
    from checker.explanation import NODES_MAX
    from checker.linearizability.violation import describe_violation

    decision = Portfolio(narrowed, model, budget).decide()
    outcome = decision.outcome
    assert outcome.verdict is not Verdict.VALID, f"zones and search disagree on key {part.key}"
    if outcome.verdict is Verdict.UNKNOWN:
        sentence = (
            f"{len(narrowed.operations):,} operations{_of(part)} have no order: their values "
            "contradict each other. There was no time left to tell more."
        )
        violation: dict[str, Any] = {
            "kind": "not-linearizable",
            "model": model.name,
            "key": part.key,
            "sentence": sentence,
            "core": [msgspec.to_builtins(o) for o in narrowed.operations[:NODES_MAX]],
            "core_size": len(narrowed.operations),
            "core_minimal": False,
        }
    else:
        violation = describe_violation(narrowed, decision.problem, outcome, model, budget)
    return _invalid(part, ZONES, violation, _figures(decision.problem, outcome))


def _valid(part: Part, algorithm: str, figures: dict[str, int]) -> PartResult:
    return PartResult(
        key=part.key,
        verdict=Verdict.VALID,
        algorithm=algorithm,
        reason=_fitting(part),
        operations=len(part.operations),
        figures=figures,
    )


def _invalid(
    part: Part, algorithm: str, violation: dict[str, Any], figures: dict[str, int]
) -> PartResult:
    return PartResult(
        key=part.key,
        verdict=Verdict.INVALID,
        algorithm=algorithm,
        reason=violation["sentence"],
        operations=len(part.operations),
        figures=figures,
        violation=violation,
    )


def _undecided(part: Part, reason: str, figures: dict[str, int]) -> PartResult:
    return PartResult(
        key=part.key,
        verdict=Verdict.UNKNOWN,
        algorithm=EXACT,
        reason=f"{len(part.operations):,} operations{_of(part)} are undecided: {reason}.",
        operations=len(part.operations),
        figures=figures,
    )


def _figures(problem: Problem, outcome: Outcome) -> dict[str, int]:
    return {
        "configurations": outcome.configurations,
        "remembered": outcome.remembered,
        "width": problem.width,
        "states": len(problem.transitions.states),
        "open": sum(len(group.starts) for group in problem.groups),
        "open-dropped": problem.open_dropped,
    }


def _fitting(part: Part) -> str:
    count = len(part.operations)
    if count == 1:
        return f"The only operation{_of(part)} fits."
    return f"All {count:,} operations{_of(part)} fit one order."


def _of(part: Part) -> str:
    return "" if part.key is None else f" of key {part.key}"
