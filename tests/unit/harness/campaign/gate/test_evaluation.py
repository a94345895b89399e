"""Figures of verdicts, each told by hand; nothing is met that was not measured."""

import datetime as dt
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.checker.fingerprints import fingerprint_of
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.figure import Measured, Subject
from splitbrain.harness.campaign.gate.catalogue import VERDICT_FIGURES, figure_named
from splitbrain.harness.campaign.gate.evaluation import (
    Judged,
    change_for_the_worse,
    evaluate,
    verdict_of,
)
from splitbrain.harness.campaign.gate.expressions import parse_subject
from splitbrain.harness.campaign.gate.failures import Failures, find_failures
from splitbrain.harness.campaign.gate.gated_run import GatedRun
from splitbrain.harness.campaign.gate.policy import Policy, Quarantine
from splitbrain.harness.campaign.gate.selection import Selection
from splitbrain.harness.campaign.gate.sentences import threshold_sentence
from splitbrain.harness.campaign.gate.verdict_figures import measure_verdicts
from tests.unit.harness.campaign.gate.gate_runs import (
    LOST_NONE,
    UNDECIDED,
    fault,
    invalid,
    policy,
    run,
    stale_read,
)

LATENCY = Subject("latency_p99_ms")
RUNS = Subject("runs_valid")


def judge(
    read: Policy,
    now: dict[Subject, Measured],
    then: dict[Subject, Measured] | None = None,
    *,
    is_waived: bool = False,
) -> Judged:
    """Return the result of the last threshold."""
    return evaluate(read, read.tier(None), now, then, is_waived=is_waived)[-1]


@pytest.mark.parametrize(("value", "state"), [(10.0, "met"), (9.0, "violated"), (None, "unknown")])
def test_a_bound_is_met_violated_or_unknown(
    tmp_path: Path, value: float | None, state: str
) -> None:
    read = policy(tmp_path, "runs_valid >= 10")
    assert judge(read, {RUNS: Measured(value, 1, None if value else "why not")}).state == state
    assert judge(read, {}).state == "unknown"


@pytest.mark.parametrize(
    ("now", "then", "state"),
    [
        (109.0, 100.0, "met"),
        (111.0, 100.0, "violated"),
        (50.0, 100.0, "met"),
        (0.0, 0.0, "met"),
        (1.0, 0.0, "violated"),
    ],
)
def test_a_regression_is_a_relative_change(
    tmp_path: Path, now: float, then: float, state: str
) -> None:
    read = policy(tmp_path, "regression(latency_p99) < 10%")
    found = judge(read, {LATENCY: Measured(now, 5000)}, {LATENCY: Measured(then, 5000)})
    assert found.state == state


def test_of_what_should_be_high_less_is_worse() -> None:
    throughput, latency = figure_named("throughput_mean"), figure_named("latency_p99_ms")
    assert change_for_the_worse(throughput, 80, 100) == pytest.approx(0.2)
    assert change_for_the_worse(latency, 80, 100) == pytest.approx(-0.2)
    assert change_for_the_worse(throughput, 5, 0) == 0
    assert math.isinf(change_for_the_worse(latency, 5, 0))


def test_a_regression_needs_samples_on_both_sides(tmp_path: Path) -> None:
    read = policy(tmp_path, "regression(latency_p99) < 10%")
    few, many = Measured(100.0, 999), Measured(100.0, 1000)
    for now, then in ((few, many), (many, few)):
        found = judge(read, {LATENCY: now}, {LATENCY: then})
        assert found.state == "unknown"
        assert "fewer than 1,000" in found.reason
    assert judge(read, {LATENCY: many}, {LATENCY: many}).state == "met"
    lenient = policy(
        tmp_path, "regression(latency_p99) < 10%", more="[samples_min]\nlatency_p99 = 5\n"
    )
    assert judge(lenient, {LATENCY: few}, {LATENCY: few}).state == "met"


def test_a_missing_baseline_is_unknown_unless_it_is_waived(tmp_path: Path) -> None:
    read = policy(tmp_path, "regression(latency_p99) < 10%")
    now = {LATENCY: Measured(1.0, 5000)}
    assert judge(read, now).state == "unknown"
    assert "--baseline" in judge(read, now).reason
    assert judge(read, now, is_waived=True).state == "not-compared"
    assert judge(read, now, {}).state == "unknown"
    new = policy(tmp_path, "failures_new == 0")
    assert judge(new, {Subject("failures_new"): Measured(None, 3)}).state == "unknown"
    assert judge(new, {}, is_waived=True).state == "not-compared"


@pytest.mark.parametrize(
    ("states", "runs", "valid", "failed", "verdict"),
    [
        (["met"], 3, 2, False, ("green", 0)),
        (["met", "not-compared"], 3, 2, False, ("green", 0)),
        (["met", "unknown"], 3, 2, False, ("unknown", 2)),
        (["unknown", "violated"], 3, 2, False, ("red", 1)),
        (["violated"], 3, 2, True, ("red", 1)),
        (["met", "unknown"], 3, 2, True, ("failed", 3)),
        (["met"], 0, 0, False, ("unknown", 2)),
        (["met"], 3, 0, False, ("unknown", 2)),
    ],
)
def test_the_verdict_follows_the_worst(
    tmp_path: Path, states: list[str], runs: int, valid: int, failed: bool, verdict: tuple[str, int]
) -> None:
    met = judge(policy(tmp_path, "runs_valid >= 1"), {RUNS: Measured(1.0)})
    judged = [msgspec.structs.replace(met, state=state) for state in states]
    assert verdict_of(judged, tried=runs, proven=valid, harness_failed=failed) == verdict


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


def test_allowed_anomalies_are_counted_and_never_taken_for_none() -> None:
    counts = {"duplicated": 2, "lost": 1}
    allowed = CheckResult("queue-totals", Verdict.VALID, "Allowed.", {"allowed": counts})
    runs = run("a", checkers=(allowed, LOST_NONE)), run("b"), run("c", checkers=(allowed,))
    assert figure("anomalies_allowed", *runs) == 6
    assert figure("anomalies_allowed{checker=lost-commits}", *runs) == 0
    assert figure("anomalies_allowed", run("b")) == 0
    # No alarm: the runs are valid.
    assert figure("violations", *runs) == 0
    assert figure("anomalies_allowed{checker=bank}", *runs) == "no such checker judged them"
    of_ledger = run("d", folder=None)
    assert figure("anomalies_allowed", *runs, of_ledger) == "of 1 run there are no results"
    unjudged = run("e", outcome="unjudged", checkers=())
    assert figure("anomalies_allowed", *runs, unjudged) == "of 1 run there are no results"


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
        ("canaries_missed", "there is no run of a suite that should fail"),
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


def test_the_run_of_the_longest_outage_is_named(tmp_path: Path) -> None:
    runs = [
        run(f"kraft-register/{name}", longest_unavailability_ms=ms)
        for name, ms in (("a", 5), ("b", 900), ("c", None))
    ]
    subject = Subject("unavailability_max_ms")
    found = measure_verdicts([subject], Selection(tuple(runs), ()), failures_of(tuple(runs)))
    threshold = judge(policy(tmp_path, "unavailability_max_ms < 100"), found)
    assert threshold_sentence(threshold) == "Violated: 900 ms (runs: 2, in b)."


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


def name_of(result: CheckResult) -> str:
    fingerprint = fingerprint_of(result)
    assert fingerprint is not None
    return fingerprint.text


def named_stale_read() -> CheckResult:
    """``stale_read`` as it is judged since anomalies have names."""
    result = stale_read()
    return msgspec.structs.replace(
        result, violations=tuple({**one, "anomaly": "stale read"} for one in result.violations)
    )


def test_quarantines_and_baselines_of_before_the_names_hold_for_what_they_meant() -> None:
    bad = run("x", outcome="invalid", checkers=(named_stale_read(),))
    before = name_of(stale_read())
    spare = (Quarantine(before, TODAY, "known"),)
    held = failures_of((bad,), quarantines=spare, known=frozenset({before}))
    (failure,) = held.all
    assert failure.text != before
    assert failure.is_spared
    assert failure.is_new is False
    assert (held.resolved, held.idle) == ((), ())
    other = Quarantine(name_of(lost(None)), TODAY, "another")
    (failure,) = failures_of((bad,), quarantines=(other,), known=frozenset({other.fingerprint})).all
    assert not failure.is_spared
    assert failure.is_new


def test_a_quarantine_spares_its_own_failure_until_its_last_day() -> None:
    bad = (invalid("x", seed=3), run("y", outcome="invalid", checkers=(lost(2),)))
    for until, spared in ((TODAY, True), (TODAY - dt.timedelta(days=1), False)):
        quarantines = (Quarantine(name_of(stale_read()), until, "known"),)
        assert figure("violations", *bad, quarantines=quarantines) == (1 if spared else 2)
        assert figure("violations_quarantined", *bad, quarantines=quarantines) == int(spared)
        assert figure("lost_commits", *bad, quarantines=quarantines) == 2
    spare = (Quarantine(name_of(lost(1)), TODAY, "known"),)
    assert figure("lost_commits", bad[1], run("z"), quarantines=spare) == 0


def test_new_failures_are_those_that_the_baseline_did_not_meet() -> None:
    bad = (invalid("x"), invalid("y", seed=2), run("z", outcome="invalid", checkers=(lost(2),)))
    assert figure("failures_new", *bad, known=frozenset()) == 2
    assert figure("failures_new", *bad, known=frozenset({name_of(stale_read())})) == 1
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
