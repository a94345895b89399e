"""Checkers by name, so that workloads can name who judges them.

A name is a checker, or a checker and its option after a colon: ``linearizability:cas-register``,
``set-full``, ``set-full:stale-reads-allowed``, ``split-brain``, ``lost-commits``. A checker that
crashes is the caller's business: it must make ``unknown`` of it.
"""

from collections.abc import Callable
from typing import Final

from checker.evidence import Evidence
from checker.linearizability.check import check as check_linearizability
from checker.lost_commits import check as check_lost_commits
from checker.models.registry import MODELS, knows, model_named
from checker.set_full import check as check_set_full
from checker.split_brain import check as check_split_brain
from checker.verdict import CheckResult
from contracts.budget import Budget
from contracts.errors import UsageError

#: Judges one run.
Checker = Callable[[Evidence, Budget], CheckResult]

_LINEARIZABILITY: Final = "linearizability"
_SEPARATOR: Final = ":"

_PLAIN: Final[dict[str, Checker]] = {
    "set-full": lambda evidence, budget: check_set_full(
        evidence.operations, budget, faults=evidence.faults
    ),
    "set-full:stale-reads-allowed": lambda evidence, budget: check_set_full(
        evidence.operations, budget, faults=evidence.faults, stale_reads_allowed=True
    ),
    "split-brain": check_split_brain,
    "lost-commits": check_lost_commits,
}


#: What each checker holds a run to, for people; models speak for themselves.
PROMISES: Final[dict[str, str]] = {
    "set-full": "An element that was acknowledged or seen is shown by every read invoked after "
    "that; nothing is shown twice, nor that nobody had asked to add. Elements that no read was "
    "invoked for are `unknown`.",
    "set-full:stale-reads-allowed": "The same, but an element may be missing for a while.",
    "split-brain": "No two nodes lead in one epoch, by what the nodes themselves logged.",
    "lost-commits": "What was acknowledged stands in the logs at the end, and the logs agree.",
}

#: Evidence besides the history that a checker cannot do without.
STATE_EVENTS: Final = "state-events"
COMMITTED_LOGS: Final = "committed-logs"

_EVIDENCE_NEEDED: Final[dict[str, frozenset[str]]] = {
    "split-brain": frozenset({STATE_EVENTS}),
    "lost-commits": frozenset({COMMITTED_LOGS}),
}


def evidence_needed(name: str) -> frozenset[str]:
    """What a checker needs besides the history; a run that cannot have it goes without it."""
    return _EVIDENCE_NEEDED.get(name, frozenset())


def checker_names() -> tuple[str, ...]:
    """Every name that ``checker_named`` knows."""
    return (*(f"{_LINEARIZABILITY}{_SEPARATOR}{model}" for model in MODELS), *_PLAIN)


def linearizability_model(name: str) -> str | None:
    """Model of a ``linearizability:MODEL`` checker, None for other checkers.

    Those split into parts that can be judged apart, see ``checker.linearizability``.
    """
    checker, separator, model = name.partition(_SEPARATOR)
    return model if checker == _LINEARIZABILITY and separator else None


def history_models() -> tuple[str, ...]:
    """What a bare history can be judged against."""
    return (*MODELS, *(name for name in _PLAIN if not evidence_needed(name)))


def history_checker(model: str) -> str:
    """Name of the checker that judges a bare history against a model, ``cas-register``.

    Raises:
        UsageError: there is no model of this name that needs nothing but a history.
    """
    names = history_models()
    if knows(model):
        return f"{_LINEARIZABILITY}{_SEPARATOR}{model}"
    if model in names:
        return model
    raise UsageError(
        f"there is no model called {model!r} for a bare history",
        f"Choose one of: {', '.join(names)}",
    )


def checker_named(name: str) -> Checker:
    """The checker of that name.

    Raises:
        UsageError: there is no such checker or model.
    """
    model = linearizability_model(name)
    if model is not None:
        model_named(model)
        return lambda evidence, budget: check_linearizability(evidence.operations, model, budget)
    checker = _PLAIN.get(name)
    if checker is None:
        raise UsageError(
            f"there is no checker called {name!r}", f"Choose one of: {', '.join(checker_names())}"
        )
    return checker
