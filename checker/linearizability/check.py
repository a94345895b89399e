"""Judges parts of a history; the door to this room.

A caller with many parts hands each to a worker that it can kill (``split``, ``check_part``,
``combine``); a caller with little asks ``check``. A budget that ends gives ``unknown`` with the
reason, never ``valid``.
"""

from collections.abc import Iterable

from checker.linearizability.outcome import Outcome
from checker.linearizability.parts import Part, PartResult, combine, split
from checker.linearizability.problem import Problem
from checker.linearizability.search import Search
from checker.linearizability.violation import describe_violation
from checker.models.model import Model
from checker.models.registry import model_named
from checker.verdict import CheckResult, Verdict
from contracts.budget import Budget
from history.records import PairedOperation

#: Names of what decided.
EXACT = "depth-first search with memo"
REPEATED = "depth-first search with memo, open operations repeatable"
#: Configurations after which a violation is looked for without counting open operations.
FIRST_TRY_CONFIGURATIONS_MAX = 20_000


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
    algorithm, problem, outcome = _search(part, model, budget)
    figures = _figures(problem, outcome)
    if outcome.verdict is Verdict.UNKNOWN:
        return _undecided(part, outcome.reason or "no reason given", figures)
    if outcome.verdict is Verdict.VALID:
        return PartResult(
            key=part.key,
            verdict=Verdict.VALID,
            algorithm=algorithm,
            reason=_fitting(part),
            operations=len(part.operations),
            figures=figures,
        )
    violation = describe_violation(part, problem, outcome, model, budget)
    return PartResult(
        key=part.key,
        verdict=Verdict.INVALID,
        algorithm=algorithm,
        reason=violation["sentence"],
        operations=len(part.operations),
        figures=figures,
        violation=violation,
    )


def _search(part: Part, model: Model, budget: Budget) -> tuple[str, Problem, Outcome]:
    """Search, in an order that decides most parts soon.

    1. The exact search, for a while.
    2. Where operations are open: the search in which they may take effect any number of times.
       It cannot drown in the ways to use them, and if even that has no order, none exists.
       An order found that way proves nothing.
    3. The exact search, as long as the budget lasts.
    """
    problem = Problem(part.operations, model)
    repeatable = bool(problem.groups) and model.bounded_states
    limit = FIRST_TRY_CONFIGURATIONS_MAX if repeatable else None
    outcome = Search(problem, budget, limit).run()
    if not repeatable or outcome.verdict is not Verdict.UNKNOWN:
        return EXACT, problem, outcome
    repeated = Problem(part.operations, model, unlimited=range(len(part.operations)))
    outcome = Search(repeated, budget).run()
    if outcome.verdict is Verdict.INVALID:
        return REPEATED, repeated, outcome
    return EXACT, problem, Search(problem, budget).run()


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
