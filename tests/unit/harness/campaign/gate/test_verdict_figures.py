"""Figures of verdicts, each told by hand; what some run cannot tell is unknown."""

import datetime as dt
from typing import Any

import msgspec
import pytest

from splitbrain.checker.fingerprints import fingerprint_of
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.figure import Subject
from splitbrain.harness.campaign.gate.catalogue import VERDICT_FIGURES
from splitbrain.harness.campaign.gate.expressions import parse_subject
from splitbrain.harness.campaign.gate.failures import Failures, find_failures
from splitbrain.harness.campaign.gate.gated_run import GatedRun, Selection
from splitbrain.harness.campaign.gate.policy import Quarantine
from splitbrain.harness.campaign.gate.verdict_figures import measure_verdicts
from tests.unit.harness.campaign.gate.gate_runs import (
    LOST_NONE,
    UNDECIDED,
    fault,
    invalid,
    run,
    stale_read,
)

TODAY = dt.date(2026, 11, 21)


def failures_of(runs: tuple[GatedRun, ...], **fields: Any) -> Failures:
    judged = [run for run in runs if not run.is_canary]
    return find_failures(judged, fields.pop("quarantines", ()), TODAY, fields.pop("known", None))


def figure(text: str, *runs: GatedRun, **fields: Any) -> float | str | None:
    """The value, or why there is none."""
    subject = parse_subject(text)
    selection = Selection(tuple(runs), ())
    measured = measure_verdicts([subject], selection, failures_of(runs, **fields))[subject]
    return measured.lack if measured.value is None else measured.value


def lost(count: int | None) -> CheckResult:
    figures = {} if count is None else {"lost": count}
    found = {"kind": "lost", "operation": {"f": "add", "type": "ok"}}
    return CheckResult("lost-commits", Verdict.INVALID, "gone", figures, violations=(found,))


MIXED = (
    run("a"),
    run("b", seed=8, system="redis", elections=None),
    run("c", outcome="vacuous", faults=(fault("pause", verified=False, healed=False),)),
    run("d", outcome="failed", longest_unavailability_ms=900),
    invalid("e"),
    run("f", outcome="unknown", checkers=(UNDECIDED,), faults=(fault(applied=False),)),
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("runs", 6),
        ("runs{system!=redis}", 5),
        ("runs_valid", 2),
        ("runs_valid{system=redis}", 1),
        ("runs_invalid", 1),
        ("runs_unknown", 1),
        ("runs_vacuous", 1),
        ("runs_failed", 1),
        ("runs_flaky", 0),
        ("seeds", 2),
        ("valid_share", 2 / 6),
        ("violations", 1),
        ("violations{checker=linearizability:cas-register}", 1),
        ("violations{checker=lost-commits}", 0),
        ("violations{system=redis}", 0),
        ("violations_quarantined", 0),
        ("undecided", 1),
        ("lost_commits", 0),
        ("faults", 5),
        ("faults{fault=pause}", 1),
        ("faults_applied", 5 / 6),
        ("faults_verified", 4 / 5),
        ("faults_verified{fault=kill}", 1),
        ("faults_healed", 4 / 5),
        ("faults_noticed", "of no fault it can be told whether the system noticed it"),
        ("elections", 10),
        ("unavailability_max_ms", 900),
        ("failures_new", "there is no baseline: name one with --baseline"),
        ("canaries_missed", "there is no planted-bug run of a suite"),
        ("runs{system=etcd}", "there is no such run"),
        ("violations{checker=bank}", "no such checker judged them"),
    ],
)
def test_each_figure_is_what_it_says(text: str, value: float | str) -> None:
    assert figure(text, *MIXED) == (value if isinstance(value, str) else pytest.approx(value))


def test_only_faults_of_which_it_can_be_told_count_as_noticed_or_not() -> None:
    seen, unseen, unknown = (
        msgspec.structs.replace(fault("pause"), noticed=noticed) for noticed in (True, False, None)
    )
    assert figure("faults_noticed", run("a", faults=(seen, unseen, unknown, seen))) == 2 / 3


def test_every_figure_of_verdicts_is_measured() -> None:
    subjects = [Subject(one.name) for one in VERDICT_FIGURES]
    measured = measure_verdicts(subjects, Selection(MIXED, ()), failures_of(MIXED))
    assert list(measured) == subjects


@pytest.mark.parametrize("text", ["violations", "undecided", "lost_commits"])
def test_a_run_that_nobody_has_judged_may_hide_anything(text: str) -> None:
    unjudged = run("x", outcome="unjudged", checkers=(), faults=())
    assert "nobody has judged" in str(figure(text, run("a"), unjudged))
    assert figure("violations", invalid(), unjudged) == 1, "a known violation is one all the same"
    assert figure("runs_failed", run("a"), unjudged) == 1


def test_lost_commits_are_added_up_and_must_be_told() -> None:
    assert figure("lost_commits", run(checkers=(lost(3),), outcome="invalid"), run("b")) == 3
    assert figure("lost_commits", run(checkers=(lost(None),), outcome="invalid")) == 1
    undecided = CheckResult("lost-commits", Verdict.UNKNOWN, "no logs")
    assert "could not be told" in str(figure("lost_commits", run(checkers=(undecided,))))
    assert "judged none" in str(figure("lost_commits", run(checkers=())))


def test_a_quarantine_spares_its_own_failure_until_its_last_day() -> None:
    fingerprint = fingerprint_of(stale_read())
    assert fingerprint is not None
    for until, spared in ((TODAY, True), (TODAY - dt.timedelta(days=1), False)):
        quarantines = (Quarantine(fingerprint.text, until, "known"),)
        bad = (invalid("x", seed=3), run("y", outcome="invalid", checkers=(lost(2),)))
        assert figure("violations", *bad, quarantines=quarantines) == (1 if spared else 2)
        assert figure("violations_quarantined", *bad, quarantines=quarantines) == int(spared)
        assert figure("lost_commits", *bad, quarantines=quarantines) == 2


def test_lost_commits_of_a_spared_failure_do_not_count() -> None:
    fingerprint = fingerprint_of(lost(1))
    assert fingerprint is not None
    spare = (Quarantine(fingerprint.text, TODAY, "known"),)
    bad = run("y", outcome="invalid", checkers=(lost(2),))
    assert figure("lost_commits", bad, run("z"), quarantines=spare) == 0


def test_new_failures_are_those_that_the_baseline_did_not_meet() -> None:
    fingerprint = fingerprint_of(stale_read())
    assert fingerprint is not None
    bad = (invalid("x"), invalid("y", seed=2), run("z", outcome="invalid", checkers=(lost(2),)))
    assert figure("failures_new", *bad, known=frozenset()) == 2
    assert figure("failures_new", *bad, known=frozenset({fingerprint.text})) == 1
    assert figure("failures_new{system=redis}", *bad, known=frozenset()) == "there is no such run"


def test_a_canary_counts_for_nothing_but_itself() -> None:
    found = invalid("canary", is_canary=True)
    missed = run("blind", is_canary=True, canary_missed=True)
    assert figure("violations", run("a"), found) == 0
    assert figure("runs", run("a"), found, missed) == 1
    assert figure("canaries_missed", run("a"), found, missed) == 1


def test_a_replay_that_passes_makes_a_failed_run_flaky() -> None:
    failed = run("bad", outcome="failed")
    replay = run("again", replay_of="bad")
    assert figure("runs_flaky", failed, replay) == 1
    assert figure("runs_flaky", failed, run("again", replay_of="bad", outcome="failed")) == 0
    assert figure("violations", invalid("bad"), replay) == 1, "a violation stays one"


def test_an_invalid_run_without_a_checker_is_a_violation() -> None:
    assert figure("violations", run("x", outcome="invalid", checkers=(LOST_NONE,))) == 1
