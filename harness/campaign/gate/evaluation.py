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


class Judged(msgspec.Struct, frozen=True):
    """One threshold and its outcome."""

    threshold: Threshold
    state: State
    #: Value compared with the bound; None where there was none.
    compared: float | None
    measured: Measured
    baseline: Measured | None
    reason: str


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
    judged: Iterable[Judged], *, valid_runs: int, runs: int, harness_failed: bool
) -> tuple[Verdict, int]:
    """Return the gate's verdict and exit code: a violated threshold always wins.

    Without a single valid run nothing was proven, whatever the thresholds say.
    """
    states = {threshold.state for threshold in judged}
    if "violated" in states:
        return "red", EXIT_INVALID
    if harness_failed:
        return "failed", EXIT_HARNESS_FAILED
    if "unknown" in states or not runs or not valid_runs:
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
    measured = figures.get(threshold.subject, Measured(None, 0, "nobody measured it"))
    if is_waived and threshold.subject.figure in COMPARING:
        return Judged(threshold, "not-compared", None, measured, None, _WAIVED)
    if measured.value is None:
        return _unknown(threshold, measured, None, measured.lack or "it has no value")
    state: State = "met" if threshold.holds_for(measured.value) else "violated"
    return Judged(threshold, state, measured.value, measured, None, "")


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
    now = figures.get(subject, Measured(None, 0, "nobody measured it"))
    if baseline is None:
        if is_waived:
            return Judged(threshold, "not-compared", None, now, None, _WAIVED)
        return _unknown(threshold, now, None, "there is no baseline: name one with --baseline")
    then = baseline.get(subject, Measured(None, 0, "the baseline does not hold it"))
    needed = policy.samples_needed(subject)
    for place, measured in (("now", now), ("in the baseline", then)):
        if measured.value is None:
            return _unknown(threshold, now, then, f"{place}: {measured.lack or 'it has no value'}")
        if measured.samples < needed:
            reason = (
                f"{place} the number of {figure.samples_of} is {measured.samples:,}, and fewer "
                f"than {needed:,} prove nothing"
            )
            return _unknown(threshold, now, then, reason)
    assert now.value is not None
    assert then.value is not None
    change = change_for_the_worse(figure, now.value, then.value)
    state: State = "met" if threshold.holds_for(change) else "violated"
    return Judged(threshold, state, change, now, then, "")


def _unknown(
    threshold: Threshold, measured: Measured, baseline: Measured | None, reason: str
) -> Judged:
    return Judged(threshold, "unknown", None, measured, baseline, reason)
