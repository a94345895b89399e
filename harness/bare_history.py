"""Judges a bare history of any origin: events and a model, no run around them; writes nothing."""

import shlex
from collections.abc import Callable
from pathlib import Path

from checker.evidence import Evidence
from checker.registry import history_checker
from checker.verdict import merge
from harness.checking import Limits, check_all
from harness.own_models import make_known
from harness.results import RESULTS_SCHEMA, Results, exit_code
from harness.timeline import acknowledged_epochs, outcome_counts
from history import importers
from history.errors import HistoryError, PairingError
from history.pairing import pair


def judge_history(
    path: Path,
    model: str,
    history_format: str | None,
    limits: Limits,
    give_up: Callable[[], str | None] = lambda: None,
) -> Results:
    """Judge a bare history.

    Args:
        path: the history's file.
        model: what to judge against: ``cas-register``, a user's own model
            (``path/to/file.py:Name``), or a checker that needs nothing but a history, ``set-full``.
        history_format: see ``history.importers.load``.
        limits: what the checker may use.
        give_up: see ``harness.checking.check_all``.

    Raises:
        HarnessError: the history cannot be read.
        UsageError: there is no such model.
    """
    make_known(model)
    name = history_checker(model)
    loaded = importers.load(path, history_format)
    try:
        operations = tuple(pair(loaded.events))
    except PairingError as error:
        raise HistoryError(f"{path}, {error.target}", error.problem, error.next_step) from error
    checked = check_all([name], Evidence(operations=operations), limits, give_up)
    verdict = merge(result.verdict for result in checked)
    vacuous = () if operations else ("The history has no operation.",)
    torn = "" if loaded.torn_bytes is None else f"{loaded.torn_bytes} bytes of a torn last line"
    interrupted = give_up() is not None
    return Results(
        schema=RESULTS_SCHEMA,
        run=path.name,
        test=path.name,
        system="",
        workload=model,
        seed=None,
        runtime=f"history of format {loaded.format}",
        verdict=verdict,
        vacuous=vacuous,
        exit_code=exit_code(
            verdict, vacuous=bool(vacuous), harness_failed=False, interrupted=interrupted
        ),
        checkers=tuple(checked),
        operations=outcome_counts(operations),
        faults=(),
        elections=None,
        epochs=tuple(sorted(acknowledged_epochs(operations))),
        longest_unavailability_ms=None,
        run_folder=str(path),
        reproduce=f"splitbrain check {shlex.quote(str(path))} --model {model}",
        problems=(f"{torn} left out.",) if torn else (),
        interrupted=interrupted,
        bare_history=True,
    )
