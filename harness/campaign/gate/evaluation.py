"""Evaluation of figures against thresholds; pure, and the same for the self-test's figures.

A missing figure satisfies nothing: its threshold is ``unknown``, and so is a regression with too
few samples on either side. The one exception is said aloud: where the user waives the baseline,
regressions are ``not-compared``.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

from splitbrain.contracts.figure import Figure, Measured, Subject
from splitbrain.harness.campaign.gate.catalogue import COMPARING, figure_named
from splitbrain.harness.campaign.gate.expressions import Threshold
from splitbrain.harness.campaign.gate.policy import Policy, Tier
from splitbrain.harness.folder.results import (
    EXIT_HARNESS_FAILED,
    EXIT_INVALID,
    EXIT_UNKNOWN,
    EXIT_VALID,
)

State = Literal["met", "violated", "unknown", "not-compared"]
Verdict = Literal["green", "red", "unknown", "failed"]

Figures = Mapping[Subject, Measured]

_WAIVED: Final = "there is no baseline"
_UNMEASURED: Final = Measured(None, 0, "nobody measured it")


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One threshold and its outcome, as the gate's JSON holds it."""

    threshold: str
    #: Whether the gate demands it because the policy says nothing of the subject.
    implied: bool
    state: State
    #: ``latency_p99_ms{workload=register}``
    subject: str
    regression: bool
    value: float | None
    samples: int
    #: Run that a least or greatest value was found in.
    worst_in: str | None = None
    baseline: float | None = None
    baseline_samples: int | None = None
    #: Regression: change for the worse as a share of the baseline; null too where that is zero.
    change: float | None = None
    reason: str = ""


def subjects_of(tier: Tier) -> list[Subject]:
    """Return the subjects to measure for a tier, each once."""
    return list(dict.fromkeys(threshold.subject for threshold in tier.thresholds))


def evaluate(
    policy: Policy, tier: Tier, figures: Figures, baseline: Figures | None, *, is_waived: bool
) -> tuple[Judged, ...]:
    """Evaluate every threshold of a tier, in its order.

    ``baseline`` is None where there is none; ``is_waived`` means that the user said so.
    """
    return tuple(
        _regression(policy, threshold, figures, baseline, is_waived=is_waived)
        if threshold.is_regression
        else _bound(threshold, figures, is_waived=is_waived and baseline is None)
        for threshold in tier.thresholds
    )


def verdict_of(
    judged: Iterable[Judged], *, tried: int, proven: int, harness_failed: bool
) -> tuple[Verdict, int]:
    """Return the gate's verdict and exit code: a violated threshold always wins.

    ``tried`` counts runs and seeds, ``proven`` those that are valid or clean: without one nothing
    was proven, whatever the thresholds say.
    """
    states = {threshold.state for threshold in judged}
    if "violated" in states:
        return "red", EXIT_INVALID
    if harness_failed:
        return "failed", EXIT_HARNESS_FAILED
    if "unknown" in states or not tried or not proven:
        return "unknown", EXIT_UNKNOWN
    return "green", EXIT_VALID


def change_for_the_worse(figure: Figure, now: float, then: float) -> float:
    """Return the change for the worse as a share of ``then``; below zero where it is better.

    From zero to anything worse is infinitely worse.
    """
    worse = then - now if figure.better == "higher" else now - then
    if then == 0:
        return math.inf if worse > 0 else 0.0
    return worse / abs(then)


def _bound(threshold: Threshold, figures: Figures, *, is_waived: bool) -> Judged:
    now = figures.get(threshold.subject, _UNMEASURED)
    if is_waived and threshold.subject.figure in COMPARING:
        return _judged(threshold, "not-compared", now, reason=_WAIVED)
    if now.value is None:
        return _judged(threshold, "unknown", now, reason=now.lack or "it has no value")
    return _judged(threshold, "met" if threshold.holds_for(now.value) else "violated", now)


def _regression(
    policy: Policy,
    threshold: Threshold,
    figures: Figures,
    baseline: Figures | None,
    *,
    is_waived: bool,
) -> Judged:
    subject = threshold.subject
    figure = figure_named(subject.figure)
    now = figures.get(subject, _UNMEASURED)
    if baseline is None:
        if is_waived:
            return _judged(threshold, "not-compared", now, reason=_WAIVED)
        reason = f"{_WAIVED}: name one with --baseline"
        return _judged(threshold, "unknown", now, reason=reason)
    then = baseline.get(subject, Measured(None, 0, "the baseline does not hold it"))
    needed = policy.samples_needed(subject)
    for place, measured in (("now", now), ("in the baseline", then)):
        reason = f"{place}: {measured.lack or 'it has no value'}"
        if measured.value is not None:
            reason = (
                f"{place} the number of {figure.samples_of} is {measured.samples:,}, and fewer "
                f"than {needed:,} prove nothing"
            )
        if measured.value is None or measured.samples < needed:
            return _judged(threshold, "unknown", now, then, reason=reason)
    assert now.value is not None
    assert then.value is not None
    change = change_for_the_worse(figure, now.value, then.value)
    state: State = "met" if threshold.holds_for(change) else "violated"
    if math.isinf(change):
        return _judged(threshold, state, now, then, reason="the baseline is zero")
    return _judged(threshold, state, now, then, change=change)


def _judged(
    threshold: Threshold,
    state: State,
    now: Measured,
    then: Measured | None = None,
    *,
    change: float | None = None,
    reason: str = "",
) -> Judged:
    return Judged(
        threshold=threshold.text,
        implied=threshold.is_implied,
        state=state,
        subject=threshold.subject.text,
        regression=threshold.is_regression,
        value=now.value,
        samples=now.samples,
        worst_in=now.worst_in,
        baseline=then.value if then else None,
        baseline_samples=then.samples if then else None,
        change=change,
        reason=reason,
    )
