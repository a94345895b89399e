"""Proof that every threshold of a policy can fail, and that the policy can be met at all.

For each threshold synthetic figures are made that meet all others and not this one. They go through
the same evaluation as real ones; the gate must be green before and red after, by that threshold
alone. A threshold without such figures is dead: it can never fail (``violations >= 0``), or never
without a stricter one. That is a failure of the self-test, and so is a gate that stays green when a
figure is missing.
"""

import math
from collections.abc import Iterator, Sequence

import msgspec

from splitbrain.contracts.figure import Figure, Measured, Subject
from splitbrain.harness.campaign.gate.catalogue import figure_named
from splitbrain.harness.campaign.gate.evaluation import evaluate, subjects_of, verdict_of
from splitbrain.harness.campaign.gate.expressions import Threshold, can_be
from splitbrain.harness.campaign.gate.policy import Policy, Tier

#: Enough for any regression.
_SAMPLES = 10**9
#: Step around a bound, besides whole ones.
_STEP = 1e-3


class Proof(msgspec.Struct, frozen=True):
    """Proof of one threshold."""

    tier: str
    threshold: Threshold
    #: Whether it turned the gate red alone, and unknown where its figure was missing.
    can_fail: bool
    #: The figures of the proof, or why there are none; one clause.
    clause: str


class _World(msgspec.Struct, frozen=True):
    now: dict[Subject, Measured]
    then: dict[Subject, Measured]

    def with_value(self, subject: Subject, now: float | None, then: float) -> "_World":
        lack = "left out on purpose" if now is None else None
        return _World(
            {**self.now, subject: Measured(now, _SAMPLES, lack)},
            {**self.then, subject: Measured(then, _SAMPLES)},
        )


def prove(policy: Policy, tiers: Sequence[Tier]) -> list[Proof]:
    """Try to make every threshold of every tier fail alone."""
    return [proof for tier in tiers for proof in _prove_tier(policy, tier)]


def _prove_tier(policy: Policy, tier: Tier) -> Iterator[Proof]:
    green = _green_world(policy, tier)
    for threshold in tier.thresholds:
        if isinstance(green, Subject):
            clause = f"no value of {green.text} meets all that is demanded of it"
            yield Proof(tier.name, threshold, can_fail=False, clause=clause)
        else:
            yield _prove(policy, tier, threshold, green)


def _green_world(policy: Policy, tier: Tier) -> _World | Subject:
    """Return figures that meet everything, else the first subject that cannot be met."""
    world = _World({}, {})
    for subject in subjects_of(tier):
        own = _only(tier, subject)
        for values in _candidates(tier, subject):
            greener = world.with_value(subject, *values)
            if not _violated(policy, own, greener):
                world = greener
                break
        else:
            return subject
    return world


def _prove(policy: Policy, tier: Tier, threshold: Threshold, green: _World) -> Proof:
    figure, subject = figure_named(threshold.subject.figure), threshold.subject

    def dead(clause: str) -> Proof:
        return Proof(tier.name, threshold, can_fail=False, clause=clause)

    if _verdict(policy, tier, green) != "green":
        return dead("the gate is never green")
    others = Tier(tier.name, tuple(other for other in tier.thresholds if other is not threshold))
    candidates = list(_candidates(tier, subject))
    if not threshold.is_regression:
        candidates.sort(key=lambda values: abs(values[0] - threshold.bound))
    for now, then in candidates:
        world = green.with_value(subject, now, then)
        if _violated(policy, tier, world) != [threshold.text]:
            continue
        if _verdict(policy, tier, world) != "red" or _verdict(policy, others, world) != "green":
            return dead("the gate is not red by it alone")
        missing = green.with_value(subject, None, then)
        if _verdict(policy, tier, missing) != "unknown":
            return dead(f"the gate does not notice that {subject.text} is missing")
        clause = _breach(threshold, figure, now, then)
        return Proof(tier.name, threshold, can_fail=True, clause=clause)
    return dead(_why_dead(policy, tier, threshold))


def _why_dead(policy: Policy, tier: Tier, threshold: Threshold) -> str:
    alone = Tier(tier.name, (threshold,))
    for values in _candidates(tier, threshold.subject):
        if _violated(policy, alone, _World({}, {}).with_value(threshold.subject, *values)):
            return "whatever violates it violates a stricter threshold too: leave it out"
    return f"no value that {threshold.measure} can have violates it"


def _breach(threshold: Threshold, figure: Figure, now: float, then: float) -> str:
    if threshold.is_regression:
        return f"red at {now:g} after {then:g}"
    return f"red at {threshold.subject.text} = {now:g}{'' if figure.unit != 'ms' else ' ms'}"


def _violated(policy: Policy, tier: Tier, world: _World) -> list[str]:
    """Return the violated thresholds' texts."""
    judged = evaluate(policy, tier, world.now, world.then, is_waived=False)
    return [threshold.threshold for threshold in judged if threshold.state == "violated"]


def _verdict(policy: Policy, tier: Tier, world: _World) -> str:
    judged = evaluate(policy, tier, world.now, world.then, is_waived=False)
    return verdict_of(judged, tried=1, proven=1, harness_failed=False)[0]


def _only(tier: Tier, subject: Subject) -> Tier:
    return Tier(tier.name, tuple(each for each in tier.thresholds if each.subject == subject))


def _candidates(tier: Tier, subject: Subject) -> Iterator[tuple[float, float]]:
    """Yield values of a subject, now and then, around every bound that the tier sets to it."""
    figure = figure_named(subject.figure)
    own = _only(tier, subject).thresholds
    bounds = [threshold.bound for threshold in own if not threshold.is_regression]
    changes = [threshold.bound for threshold in own if threshold.is_regression]
    near = {value for bound in bounds for value in _around(bound)}
    for now in sorted(near | {0.0, 0.5, 1.0, 100.0}):
        if can_be(now, figure):
            yield now, now
            for change in (value for bound in changes for value in _around(bound)):
                yield from _before(figure, now, change)


def _before(figure: Figure, now: float, change: float) -> Iterator[tuple[float, float]]:
    """Yield an earlier value from which now is so much worse; where it can be none, both grow."""
    factor = 1 - change if figure.better == "higher" else 1 + change
    if factor <= 0 or not math.isfinite(factor):
        return
    for scale in (1.0, 1000.0) if figure.unit == "count" else (1.0,):
        then = now * scale / factor
        if figure.unit == "count":
            then = float(round(then))
        if can_be(then, figure) and then > 0:
            yield now * scale, then


def _around(bound: float) -> tuple[float, ...]:
    near = abs(bound) * _STEP or _STEP
    whole = float(math.floor(bound))
    return (bound - near, bound, bound + near, whole - 1, whole, whole + 1, bound / 2, bound * 2)
