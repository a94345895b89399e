"""A policy file is read strictly: what is wrong is told with its line, before any run is seen."""

import datetime as dt
from pathlib import Path

import pytest

from splitbrain.contracts.errors import UsageError
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
