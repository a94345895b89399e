"""Runs the parts of a judgement in the test's own process, where many runs are judged.

Workers whose parts misbehave are the matter of ``test_judge_workers.py``.
"""

from collections.abc import Callable, Sequence

import pytest

from splitbrain.contracts.budget import Unlimited
from splitbrain.harness.pool.limits import Limits
from splitbrain.harness.pool.worker_process import resolve
from splitbrain.harness.pool.workers import Part, PartOutcome


def run_parts_here(
    parts: Sequence[Part],
    _limits: Limits,
    *,
    give_up: Callable[[], str | None] = lambda: None,
    warm: object = None,
) -> list[PartOutcome]:
    """As ``harness.pool.workers.run_parts``, without workers."""
    del warm
    outcomes: list[PartOutcome] = []
    for part in parts:
        reason = give_up()
        value = None
        if reason is None:
            try:
                value = resolve(part.function)(part.payload, Unlimited())  # type: ignore[arg-type]
            except Exception as error:  # noqa: BLE001 - as a worker does
                reason = f"crashed: {type(error).__name__}: {error}"
        outcomes.append(PartOutcome(value, reason, 0.0, 0.0))
    return outcomes


def judge_in_process(monkeypatch: pytest.MonkeyPatch, *, report: bool = False) -> None:
    """Judge without workers, and without a report unless it is asked for."""
    monkeypatch.setattr("splitbrain.harness.pool.workers.run_parts", run_parts_here)
    monkeypatch.setattr("splitbrain.harness.report.page_writer.run_parts", run_parts_here)
    if not report:
        monkeypatch.setattr("splitbrain.harness.report.publishing.draw_page", lambda *_: None)
