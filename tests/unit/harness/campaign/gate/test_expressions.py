"""Thresholds mean what they say, and what means nothing is refused in words."""

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.figure import Condition, Subject
from splitbrain.harness.campaign.gate.catalogue import FIGURES
from splitbrain.harness.campaign.gate.expressions import parse_subject, parse_threshold


@pytest.mark.parametrize(
    ("text", "figure", "comparison", "bound", "is_regression"),
    [
        ("violations == 0", "violations", "==", 0, False),
        ("lost_commits==0", "lost_commits", "==", 0, False),
        ("failover_p99_ms < 1000", "failover_p99_ms", "<", 1000, False),
        ("failover_p99 < 1 s", "failover_p99_ms", "<", 1000, False),
        ("failover_p99_ms <= 1_000ms", "failover_p99_ms", "<=", 1000, False),
        ("availability_min > 0.9", "availability_min", ">", 0.9, False),
        ("faults_verified >= 95%", "faults_verified", ">=", 0.95, False),
        ("runs_valid >= 50", "runs_valid", ">=", 50, False),
        ("elections != 0", "elections", "!=", 0, False),
        ("elections < 3", "elections", "<", 3, False),
        ("regression(latency_p99) < 10%", "latency_p99_ms", "<", 0.1, True),
        ("regression( throughput_mean ) <= 0.2", "throughput_mean", "<=", 0.2, True),
    ],
)
def test_a_threshold_is_read(
    text: str, figure: str, comparison: str, bound: float, is_regression: bool
) -> None:
    threshold = parse_threshold(text)
    assert threshold.subject == Subject(figure)
    assert (threshold.comparison, threshold.is_regression) == (comparison, is_regression)
    assert threshold.bound == pytest.approx(bound)


def test_conditions_are_sorted_and_come_back_as_they_are_written() -> None:
    subject = parse_threshold("latency_p99{system=kraft, operation!=cas} < 5").subject
    assert subject.conditions == (
        Condition("operation", "cas", is_equal=False),
        Condition("system", "kraft"),
    )
    assert subject.text == "latency_p99_ms{operation!=cas, system=kraft}"
    assert parse_subject(subject.text) == subject
    checker = parse_subject("violations{checker=linearizability:cas-register}")
    assert checker.conditions[0].value == "linearizability:cas-register"


@pytest.mark.parametrize("figure", FIGURES)
def test_every_figure_can_be_named_in_a_threshold(figure: str) -> None:
    better = FIGURES[figure].better
    text = f"{figure} {'>=' if better == 'higher' else '<='} 1"
    assert parse_threshold(text).subject == Subject(figure)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("violations", "'violations' compares nothing"),
        ("violations = 0", "compares nothing"),
        ("violatoins == 0", "no figure called 'violatoins'. Did you mean 'violations'?"),
        ("latency_p98 < 3", "Did you mean 'latency_p9"),
        ("violations == none", "'none' is no number"),
        ("violations == 0 == 0", "names no figure"),
        ("violations{fault=kill} == 0", "violations cannot be chosen by 'fault'"),
        ("failover_p99{systm=kraft} < 1", "cannot be chosen by 'systm'. Did you mean 'system'?"),
        ("failover_p99{kraft} < 1", "'kraft' is no condition"),
        ("failover_p99{} < 1", "is no condition"),
        ("violations < 10%", "violations is no share"),
        ("violations <= 3 ms", "this is no time"),
        ("regression(latency_p99) < 5 ms", "this is no time"),
        ("availability_min < 0.9", "demands what is worse: of availability_min higher is better"),
        ("failover_p99_ms > 10", "demands what is worse"),
        ("regression(latency_p99) > 10%", "demands what is worse"),
        ("regression(elections) < 10%", "no change of elections is for the worse"),
        ("{system=kraft} == 0", "names no figure"),
        ("== 0", "names no figure"),
    ],
)
def test_what_is_wrong_is_refused_in_words(text: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_threshold(text)
    assert says in str(refused.value)
