"""Nodes that do not agree are a finding; for whom a read speaks is what the system claims."""

import json
from pathlib import Path
from typing import Any

import pytest

from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.names import RunId
from splitbrain.contracts.system import ReadsSpeakFor
from splitbrain.harness.judge.bare_history import judge_history
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.harness.judge.node_health import single_holders
from splitbrain.harness.pool.limits import Limits
from splitbrain.harness.run.options import prepare
from splitbrain.harness.run.plan_record import plan_of
from splitbrain.history.run_folder import RunFolder
from tests.unit.harness.judged_runs import edit, edit_plan, judged, lines, rewrite, verdict_of
from tests.unit.harness.run_fake import FakeRun

pytestmark = pytest.mark.usefixtures("in_process")

LIMITS = Limits(30, 1024, 1)
#: Phases with which a fault is seen to be gone.
GONE = ("removed", "resumed")


def apart(folder: RunFolder, *, left_out: str = "", then: str = "") -> None:
    """The nodes did not agree within the patience of the run."""
    path = folder.root / "phases.jsonl"
    course = [line for line in lines(path) if line["phase"] != left_out]
    for line in course:
        if line["phase"] == "converged":
            line |= {"phase": "not-converged", "detail": "after 30 s: n3 is at 5 of 9"}
    rewrite(path, course + ([{"time": 1, "phase": then}] if then else []))


# --- nodes that do not agree -----------------------------------------------------------------


@pytest.mark.parametrize("checkers", [["linearizability:cas-register"], ["lost-commits"]])
def test_nodes_that_do_not_agree_are_a_finding_whatever_judges_the_run(
    folder: RunFolder, checkers: list[str]
) -> None:
    apart(folder)
    edit_plan(folder, checkers=checkers)
    found = judged(folder)
    assert (found.headline, found.exit_code) == ("UNKNOWN", 2)
    (told,) = [result for result in found.checkers if result.checker == "convergence"]
    assert told.verdict is Verdict.UNKNOWN
    assert told.reason == (
        "All faults were healed. The nodes did not come to agree: after 30 s: n3 is at 5 of 9."
    )
    # Said once.
    assert not any("agree" in problem for problem in found.problems)


def test_nodes_that_agree_are_no_finding(folder: RunFolder) -> None:
    assert all(result.checker != "convergence" for result in judged(folder).checkers)


@pytest.mark.parametrize(("left_out", "then"), [("", "interrupted"), ("healed", "")])
def test_a_run_that_was_not_given_its_time_is_none_either(
    folder: RunFolder, left_out: str, then: str
) -> None:
    apart(folder, left_out=left_out, then=then)
    found = judged(folder)
    assert all(result.checker != "convergence" for result in found.checkers)
    assert any("did not come to agree" in problem for problem in found.problems)


# --- nodes that promised to agree within a time ------------------------------------------------


def took(folder: RunFolder, seconds: float) -> None:
    """The nodes agreed so long after the heal, and the load was over before it."""
    path = folder.root / "phases.jsonl"
    course = lines(path)
    (healed,) = [line["time"] for line in course if line["phase"] == "healed"]
    for line in course:
        if line["phase"] in ("converged", "not-converged"):
            line["time"] = healed + round(seconds * 1e9)
    rewrite(path, course)


@pytest.mark.parametrize(
    ("agrees_after_s", "limit_s", "verdict"),
    [
        (5.0, 90.0, Verdict.VALID),
        (90.0, 90.0, Verdict.VALID),
        (90.1, 90.0, Verdict.INVALID),
        (None, 90.0, Verdict.INVALID),
    ],
)
def test_a_promised_recovery_is_kept_or_broken(
    folder: RunFolder, agrees_after_s: float | None, limit_s: float, verdict: Verdict
) -> None:
    edit_plan(folder, recovery_limit_s=limit_s)
    if agrees_after_s is None:
        apart(folder)
    took(folder, agrees_after_s or limit_s)
    found = judged(folder)
    (told,) = [result for result in found.checkers if result.checker == "convergence"]
    assert told.verdict is verdict
    assert "promised within 90 s" in told.reason
    assert [each["kind"] for each in told.violations] == (
        ["not-recovered"] if verdict is Verdict.INVALID else []
    )
    assert found.headline == verdict.value.upper()
    assert not any("agree" in problem for problem in found.problems)


def test_who_had_less_time_than_promised_broke_no_promise(folder: RunFolder) -> None:
    apart(folder)
    took(folder, 30.0)
    edit_plan(folder, recovery_limit_s=90.0)
    assert verdict_of(judged(folder), "convergence") is Verdict.UNKNOWN


def test_who_was_not_seen_to_be_healed_broke_no_promise(folder: RunFolder) -> None:
    apart(folder)
    took(folder, 100.0)
    edit_plan(folder, recovery_limit_s=90.0)
    edit(folder.faults, lambda told: [line for line in told if line["phase"] not in GONE])
    assert verdict_of(judged(folder), "convergence") is Verdict.UNKNOWN


@pytest.mark.parametrize(("left_out", "then"), [("", "interrupted"), ("healed", "")])
def test_who_was_not_given_the_promised_time_broke_no_promise(
    folder: RunFolder, left_out: str, then: str
) -> None:
    apart(folder, left_out=left_out, then=then)
    edit_plan(folder, recovery_limit_s=90.0)
    assert all(result.checker != "convergence" for result in judged(folder).checkers)


# --- for whom reads speak --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plan", "converged", "anybody"),
    [
        ({"reads_speak_for": "cluster"}, True, False),
        ({"reads_speak_for": "cluster"}, False, False),
        ({"reads_speak_for": "converged"}, True, False),
        ({"reads_speak_for": "converged"}, False, True),
        ({"reads_speak_for": "member"}, True, True),
        ({"reads_speak_for": "member"}, False, True),
        # Plans of earlier versions: the adapter says it, where there is one.
        ({"system": "kraft"}, False, False),
        ({"system": "redis"}, True, False),
        ({"system": "redis"}, False, True),
        ({"system": "of somebody else"}, True, True),
    ],
)
def test_who_may_hold_what_was_not_read_follows_from_the_claim(
    folder: RunFolder, plan: dict[str, Any], converged: bool, anybody: bool
) -> None:
    edit_plan(folder, **plan)
    found = single_holders(load_run(folder.root), converged=converged)
    assert found == (frozenset({"n1", "n2", "n3"}) if anybody else frozenset())


def test_a_node_that_does_not_vote_holds_nothing_for_the_cluster(folder: RunFolder) -> None:
    edit_plan(folder, reads_speak_for="member", observers=["n4"])
    found = single_holders(load_run(folder.root), converged=True)
    assert found == frozenset({"n1", "n2", "n3"})


@pytest.mark.parametrize("claim", ["member", "converged", "cluster"])
def test_the_plan_records_the_claim(tmp_path: Path, claim: ReadsSpeakFor) -> None:
    run = FakeRun(tmp_path)
    run.system.reads_speak_for = claim
    plan = plan_of(prepare(run.options, run.system, lambda: run.runtime), "test", RunId("r"))
    assert plan.reads_speak_for == claim


def test_an_adapter_that_claims_nothing_claims_least(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = FakeRun(tmp_path)
    monkeypatch.delattr(type(run.system), "reads_speak_for")
    plan = plan_of(prepare(run.options, run.system, lambda: run.runtime), "test", RunId("r"))
    assert plan.reads_speak_for == "member"


def with_a_lost_element(folder: RunFolder, *readers: str) -> None:
    """Clients of a set: what n2 acknowledged is in no final read."""
    told: list[dict[str, Any]] = []

    def operation(f: str, value: Any, node: str, *, final: bool = False) -> None:
        for kind in ("invoke", "ok"):
            told.append(
                {
                    "index": len(told),
                    "time": 1_000 * len(told),
                    "process": 0,
                    "type": kind,
                    "f": f,
                    "key": "s",
                    "value": None if f == "read" and kind == "invoke" else value,
                    "node": node,
                    "final": final,
                }
            )

    operation("add", 1, "n2")
    for node in readers:
        operation("read", [], node, final=True)
    rewrite(folder.history, told)
    phases = folder.root / "phases.jsonl"
    edit(phases, lambda course: [{**line, "events": 0} for line in course])


@pytest.mark.parametrize(
    ("claim", "readers", "verdict"),
    [
        ("member", ["n1"], Verdict.UNKNOWN),
        ("member", ["n1", "n2", "n3"], Verdict.INVALID),
        ("member", [], Verdict.UNKNOWN),
        ("converged", ["n1"], Verdict.INVALID),
        ("cluster", ["n1"], Verdict.INVALID),
    ],
)
def test_an_element_is_lost_once_all_that_may_hold_it_were_read(
    folder: RunFolder, claim: str, readers: list[str], verdict: Verdict
) -> None:
    with_a_lost_element(folder, *readers)
    edit_plan(folder, checkers=["set-full"], reads_speak_for=claim)
    assert verdict_of(judged(folder), "set-full") is verdict


@pytest.mark.parametrize(("readers", "code"), [(["n1"], 2), (["n1", "n2"], 1), (["n2"], 1)])
def test_of_a_bare_history_the_nodes_that_answered_count(
    folder: RunFolder, readers: list[str], code: int
) -> None:
    with_a_lost_element(folder, *readers)
    assert judge_history(folder.history, "set-full", None, LIMITS).exit_code == code


@pytest.mark.parametrize("lacking", ["node", "final"])
def test_a_bare_history_without_nodes_or_final_reads_is_judged_by_itself(
    folder: RunFolder, lacking: str
) -> None:
    with_a_lost_element(folder, "n1")
    told = [
        {name: value for name, value in json.loads(line).items() if name != lacking}
        for line in folder.history.read_text().splitlines()
    ]
    rewrite(folder.history, told)
    assert judge_history(folder.history, "set-full", None, LIMITS).exit_code == 1
