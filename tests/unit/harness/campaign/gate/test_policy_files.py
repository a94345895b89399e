"""A policy file is read strictly and its thresholds mean what they say, or its line is told."""

import datetime as dt
from pathlib import Path

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.figure import Condition, Subject
from splitbrain.harness.campaign.gate.catalogue import FIGURES
from splitbrain.harness.campaign.gate.expressions import parse_subject, parse_threshold
from splitbrain.harness.campaign.gate.policy import IMPLIED, Policy, read_policy

ROOT = Path(__file__).parents[5]
WHOLE = """schema = 1
default_tier = "nightly"
require = ["violations == 0"]

[tier.pull-request]
require = ["runs_valid >= 5", "failover_p99_ms < 2000"]

[tier.nightly]
inherits = "pull-request"
require = ["failover_p99_ms < 1000"]

[tier.release]
inherits = "nightly"
require = ["runs_valid >= 50", "violations <= 1"]

[samples_min]
failover_p99 = 3

[[quarantine]]
fingerprint = "f1-0123456789ab"
until = 2026-12-31
reason = "known, issue 7"
"""


def policy(tmp_path: Path, text: str) -> Policy:
    path = tmp_path / "gate.toml"
    path.write_text(text)
    return read_policy(path)


def test_tiers_inherit_and_say_more_of_the_same_figure(tmp_path: Path) -> None:
    read = policy(tmp_path, WHOLE)

    def texts(tier: str) -> list[str]:
        return [one.text for one in read.tier(tier).thresholds]

    assert texts("pull-request") == ["violations == 0", "runs_valid >= 5", "failover_p99_ms < 2000"]
    assert texts("nightly") == ["violations == 0", "runs_valid >= 5", "failover_p99_ms < 1000"]
    assert texts("release") == ["failover_p99_ms < 1000", "runs_valid >= 50", "violations <= 1"]
    assert read.tier(None).name == "nightly"
    assert read.samples_min == {"failover_p99_ms": 3}
    assert read.quarantines[0].until == dt.date(2026, 12, 31)


def test_violations_are_demanded_to_be_none_where_nobody_speaks_of_them(tmp_path: Path) -> None:
    read = policy(tmp_path, 'schema = 1\nrequire = ["runs_valid >= 1"]\n')
    assert read.tier(None).thresholds[0] == IMPLIED
    read = policy(tmp_path, 'schema = 1\nrequire = ["violations{system=kraft} == 0"]\n')
    assert read.tier(None).thresholds[0] == IMPLIED


def test_several_tiers_and_no_default_must_be_chosen_from(tmp_path: Path) -> None:
    read = policy(tmp_path, WHOLE.replace('default_tier = "nightly"\n', ""))
    with pytest.raises(UsageError, match="Choose one with --tier: pull-request, nightly, release"):
        read.tier(None)
    with pytest.raises(UsageError, match=r"no tier 'nightyl'\. Did you mean 'nightly'\?"):
        read.tier("nightyl")


def test_the_default_policy_of_this_project_is_one() -> None:
    read = read_policy(ROOT / "gate.toml")
    assert list(read.tiers) == ["pull-request", "nightly", "release"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("schema = 1\n", "", "it says no schema, and this version reads 1"),
        ("schema = 1\n", "schema = 2\n", "line 1: it has schema 2"),
        ('default_tier = "nightly"', 'default_tier = "night"', "line 2: there is no tier 'night'"),
        ("[samples_min]", "[sample_min]", "line 16: there is no key 'sample_min'. Did you mean"),
        ("[tier.release]\ninherits", "[tier.release]\ninherit", "line 13: there is no key"),
        ('inherits = "nightly"', 'inherits = "nihgtly"', "line 13: the tier 'release' inherits"),
        ('inherits = "pull-request"', 'inherits = "release"', "inherits from itself"),
        ("runs_valid >= 50", "run_valid >= 50", "line 14: there is no figure called 'run_valid'"),
        ("runs_valid >= 5", "runs_valid{system=krat} >= 5", "line 6: there is no system"),
        ('"violations == 0"', '"violations == 0", "violations == 0"', "stands there twice"),
        ('"violations == 0"', "7", "line 3: the threshold 7 is no text"),
        ('["violations == 0"]', '"violations == 0"', "line 3: require is no list"),
        ("failover_p99 = 3", "failover_p99 = 0", "line 17: failover_p99 = 0 is no number"),
        ("failover_p99 = 3", "failover_p = 3", "line 17: there is no figure called 'failover_p'"),
        ("f1-0123456789ab", "f1-0123", "line 20: a quarantine's fingerprint is 'f1-0123'"),
        ("until = 2026-12-31\n", "", "line 19: the quarantine of f1-0123456789ab has no last day"),
        ("2026-12-31", '"2026-12-31"', "line 21: the quarantine of f1-0123456789ab has no last"),
        ('reason = "known, issue 7"', 'reason = " "', "line 22: the quarantine of"),
        ("reason =", "because =", "line 22: there is no key 'because'"),
        ("[[quarantine]]", "[quarantine]", "Write it as [[quarantine]]"),
        ("[tier.nightly]", "[tier.nightly", "is no TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    assert old in WHOLE
    with pytest.raises(UsageError) as refused:
        policy(tmp_path, WHOLE.replace(old, new, 1))
    assert says in str(refused.value)
    assert str(tmp_path / "gate.toml") in str(refused.value)


def test_the_same_failure_may_not_be_spared_twice(tmp_path: Path) -> None:
    again = WHOLE[WHOLE.index("[[quarantine]]") :]
    with pytest.raises(UsageError, match="line 24: f1-0123456789ab is quarantined twice"):
        policy(tmp_path, WHOLE + "\n" + again)


@pytest.mark.parametrize("text", ["schema = 1\n", "schema = 1\nrequire = []\n"])
def test_a_policy_without_any_threshold_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="it demands nothing"):
        policy(tmp_path, text)


def test_a_tier_without_any_threshold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the tier 'empty' demands nothing"):
        policy(tmp_path, "schema = 1\n[tier.empty]\n")


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_policy(tmp_path / "none.toml")


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
