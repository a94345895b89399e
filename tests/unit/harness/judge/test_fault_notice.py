"""A fault that the system never noticed is told apart from one that it survived."""

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.fault import FaultEvent, FaultTraits
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.folder.results import FaultResult, OutcomeCounts, Results, leading_sentence
from splitbrain.harness.judge import fault_notice
from splitbrain.harness.judge.evidence_loader import RunRecord
from splitbrain.harness.judge.fault_notice import NOTHING_NOTICED, Notice, notices, too_short
from splitbrain.harness.report.junit import to_junit
from splitbrain.harness.report.summary import to_markdown, unnoticed
from splitbrain.history.course import LeaderSighting, Phase
from splitbrain.history.fault_windows import FaultWindow
from splitbrain.history.plan import Noticing
from splitbrain.history.records import PairedOperation
from splitbrain.history.run_folder import RunFolder
from tests.plans import plan_with

MS = 1_000_000
S = 1000 * MS
NODES = ("n1", "n2", "n3")
#: The fault of most of these tests: from 10 s to 12 s, on n3.
PAUSE = FaultWindow(0, "pause", ("n3",), 10 * S, 12 * S, 10 * S, healed=True)


def operation(start: int, took: int | None = 5 * MS, **changes: Any) -> PairedOperation:
    end = None if took is None else start + took
    made = PairedOperation(start, 0, "write", "r", 1, 1, "ok", start, end)
    return msgspec.structs.replace(made, **changes)


#: Ten a second for 20 s; every fourth is refused by a follower, as pinned clients are.
LOAD = tuple(
    operation(at * S // 10 + 1)
    if at % 4
    else operation(at * S // 10 + 1, type="fail", error="not-leader")
    for at in range(200)
)


def said(node: str, *events: tuple[int, str, dict[str, Any]]) -> list[StateEvent]:
    """Time in ms, kind, and what else there is to it."""
    return [
        msgspec.structs.replace(
            StateEvent(node, number, 0, kind, 1, time=at * MS),  # type: ignore[arg-type]
            **more,
        )
        for number, (at, kind, more) in enumerate(events)
    ]


def follows(node: str, *more: tuple[int, str, dict[str, Any]]) -> list[StateEvent]:
    """A node that leads or follows, with a log that grows ten times a second."""
    role = {"role": "leader" if node == "n1" else "follower", "leader": 1}
    grown = [(at * 100, "append", {}) for at in range(3, 200)]
    return said(node, *sorted([(200, "role", role), *grown, *more], key=lambda event: event[0]))


def quiet_events() -> dict[str, list[StateEvent]]:
    return {node: follows(node) for node in NODES}


def run(**changes: Any) -> RunRecord:
    base = RunRecord(
        RunFolder(Path("run")), plan_with(), operations=[*LOAD], state_events=quiet_events()
    )
    return msgspec.structs.replace(base, **changes)


def noticed(window: FaultWindow = PAUSE, **changes: Any) -> Notice:
    return notices([window], run(**changes))[window.index]


def test_a_fault_that_nothing_shows_was_not_noticed() -> None:
    assert noticed() == Notice(False, NOTHING_NOTICED)


@pytest.mark.parametrize("at", [10_000, 11_000, 12_900])
def test_a_change_of_role_is_a_notice(at: int) -> None:
    events = quiet_events()
    events["n2"] = follows("n2", (at, "role", {"role": "candidate", "epoch": 2}))
    notice = noticed(state_events=events)
    assert notice.noticed
    assert notice.text == f"n2 became candidate in epoch 2 after {at - 10_000:,} ms"


@pytest.mark.parametrize("at", [9_999, 13_001])
def test_a_change_of_role_at_another_time_is_none(at: int) -> None:
    events = quiet_events()
    events["n2"] = follows("n2", (at, "role", {"role": "candidate", "epoch": 2}))
    assert noticed(state_events=events).noticed is False


def test_saying_the_same_role_again_is_no_change() -> None:
    events = quiet_events()
    events["n2"] = follows("n2", (11_000, "role", {"role": "follower", "leader": 1}))
    assert noticed(state_events=events).noticed is False


def test_a_killed_node_s_own_start_is_no_notice_of_the_others() -> None:
    kill = msgspec.structs.replace(PAUSE, kind="kill", traits=FaultTraits("at-once"))
    events = quiet_events()
    before = tuple(event for event in events["n3"] if (event.time or 0) < 10 * S)
    again = {"incarnation": 1, "role": "follower", "leader": 1}
    after = said("n3", (12_100, "started", {"incarnation": 1}), (12_200, "role", again))
    grown = tuple(
        msgspec.structs.replace(event, incarnation=1)
        for event in events["n3"]
        if event.kind == "append" and (event.time or 0) > 12 * S
    )
    events["n3"] = [*before, *after, *grown]
    assert noticed(kill, state_events=events).noticed is False
    # A log that stands still while its node is frozen is one that fell behind.
    assert noticed(state_events=events).noticed


def test_a_node_that_ends_by_itself_under_a_fault_is_a_notice() -> None:
    phases = (Phase(11 * S, "node-exited", node="n2", exit_code=2),)
    assert noticed(phases=phases).text == "n2 ended by itself after 1,000 ms"
    assert noticed(phases=(Phase(2 * S, "node-exited", node="n2"),)).noticed is False


def test_a_peer_that_fell_behind_is_a_notice() -> None:
    events = quiet_events()
    events["n3"] = [
        event for event in events["n3"] if not 10_400 * MS < (event.time or 0) < 11_900 * MS
    ]
    assert noticed(state_events=events).text == "n3 took in nothing for 1.5 s while others did"


def test_where_nobody_writes_nobody_falls_behind() -> None:
    events = {
        node: tuple(event for event in told if not 10_000 * MS < (event.time or 0) < 12_000 * MS)
        for node, told in quiet_events().items()
    }
    assert noticed(state_events=events).noticed is False


@pytest.mark.parametrize(
    ("suffering", "words"),
    [
        (
            operation(11 * S, type="info", error="timed-out", took=None),
            "1 of 31 operations ended info (timed-out)",
        ),
        (
            operation(11 * S, type="fail", error="not-sent"),
            "1 of 31 operations ended fail (not-sent)",
        ),
        (operation(11 * S, 400 * MS), "an answer took 400 ms, 5 ms at most without a fault"),
        # Invoked before it, and open when it came.
        (
            operation(9 * S, 1500 * MS, type="fail", error="timed-out"),
            "1 of 31 operations ended fail (timed-out)",
        ),
    ],
)
def test_a_request_that_suffers_is_a_notice(suffering: PairedOperation, words: str) -> None:
    notice = noticed(operations=(*LOAD, suffering))
    assert (notice.noticed, notice.text) == (True, words)


def test_failures_as_usual_are_none_and_many_more_are() -> None:
    refused = [operation(11 * S + n, type="fail", error="not-leader") for n in range(40)]
    assert noticed(operations=(*LOAD, *refused[:3])).noticed is False
    notice = noticed(operations=(*LOAD, *refused))
    assert notice.noticed
    assert "48 of 70 operations ended fail (not-leader), where 17 are usual" in notice.text


def test_final_reads_tell_nothing() -> None:
    late = operation(11 * S, type="fail", error="not-sent", final=True)
    assert noticed(operations=(*LOAD, late)).noticed is False


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"operations": ()}, "it hit no operation"),
        (
            {"operations": [one for one in LOAD if 10 * S < one.start < 13 * S]},
            "too few operations were made without a fault to compare with",
        ),
        ({"state_events": {}}, "the nodes stated no role"),
        ({"state_events": {"n1": follows("n1")}}, "n2, n3 stated no role"),
    ],
)
def test_what_cannot_be_told_is_said(changes: dict[str, Any], why: str) -> None:
    assert noticed(**changes) == Notice(None, why)


def test_from_outside_who_leads_is_seen() -> None:
    seen = (LeaderSighting(1 * S, NodeName("n1"), 1),)
    assert noticed(state_events={}, sightings=seen).noticed is False
    later = (*seen, LeaderSighting(12 * S, NodeName("n2"), 2))
    notice = noticed(state_events={}, sightings=later)
    assert (notice.noticed, notice.text) == (True, "n2 was seen to lead after 2,000 ms")


def test_only_faults_that_took_effect_can_be_noticed() -> None:
    never = msgspec.structs.replace(PAUSE, seen=None)
    spared = msgspec.structs.replace(PAUSE, spared=True)
    assert notices([never], run()) == notices([spared], run()) == {}


def test_operations_meet_the_faults_that_they_overlap() -> None:
    """The quick way to find them, against looking at every pair."""
    draw = random.Random(5)
    for _ in range(200):
        spans = sorted(
            (start, start + draw.randrange(30)) for start in draw.choices(range(50), k=4)
        )
        made = [
            operation(start, draw.choice([0, 1, 7, None]), type="info", error=str(start))
            for start in draw.choices(range(90), k=30)
        ]
        found = fault_notice._Requests(spans, made, 3)
        given_up = [o.start + 3 if o.end is None else o.end for o in made]
        lasted = list(zip(made, given_up, strict=True))
        for place, (start, end) in enumerate(spans):
            met = [o for o, over in lasted if o.start < end and over > start]
            assert found._met[place].count == len(met)
        quiet = [
            o for o, over in lasted if all(o.start >= end or over <= start for start, end in spans)
        ]
        assert found._quiet.count == len(quiet)


def test_what_an_earlier_fault_left_unknown_is_no_notice_of_a_later_one() -> None:
    earlier = msgspec.structs.replace(PAUSE, index=1, start=3 * S, end=4 * S)
    unknown = [operation(3 * S + n, type="info", error="lost", took=None) for n in range(50)]
    given = run(operations=[*LOAD, *unknown])
    found = notices([earlier, PAUSE], given)
    assert found[1].noticed
    assert "50 of 70 operations ended info (lost)" in found[1].text
    assert found[0] == Notice(False, NOTHING_NOTICED)


def test_people_are_told() -> None:
    fault = FaultResult(
        *(0, "pause", "n3"), ("n3",), at_ms=1, verified=True, applied=True, healed=True, healed_ms=2
    )
    silent = msgspec.structs.replace(fault, noticed=False, notice=NOTHING_NOTICED)
    seen = msgspec.structs.replace(fault, noticed=True, notice="")
    (sentence,) = unnoticed(results_of(fault, silent, seen))
    assert sentence.startswith(
        "Fault 0 (pause:n3) took effect, but the system noticed nothing: no "
    )
    results = results_of(silent)
    assert "1 fault took effect (1 unnoticed by the system), no checker" in leading_sentence(
        results
    )
    assert sentence in to_markdown(results)
    assert "| no |" in to_markdown(results)


def results_of(*faults: FaultResult, **changes: Any) -> Results:
    return msgspec.convert(
        {
            **dict.fromkeys(("run", "test", "system", "workload", "runtime", "reproduce"), "x"),
            "schema": 1,
            "seed": 1,
            "verdict": "valid",
            "vacuous": [],
            "exit_code": 0,
            "checkers": [],
            "elections": None,
            "epochs": [],
            "run_folder": "/nowhere",
            "operations": {"write": OutcomeCounts(ok=9)},
            "longest_unavailability_ms": None,
            "faults": faults,
            **changes,
        },
        Results,
    )


# --- faults that are over before they can be noticed -----------------------------------------

LATE = Noticing(62.0, ("partition", "pause"), 180.0)
HEAL = {"invoked": 10, "verified": 10, "removed": 12}


def faults_of(kind: str, index: int = 0, **times: int) -> list[FaultEvent]:
    return [
        FaultEvent(at * S, index, kind, phase, "n3", (NodeName("n3"),))  # type: ignore[arg-type]
        for phase, at in (HEAL | times).items()
    ]


def short(
    *events: FaultEvent, noticing: Noticing | None = LATE, noticed: tuple[str, ...] = ()
) -> dict[str, str]:
    plan = plan_with(noticing=noticing)
    return too_short(run(plan=plan, faults=[*events]), noticed)


def test_a_kind_that_was_noticed_lasted_long_enough_whatever_the_adapter_says() -> None:
    events = [*faults_of("partition"), *faults_of("pause", 1)]
    assert set(short(*events)) == {"partition", "pause"}
    assert set(short(*events, noticed=("pause", "kill"))) == {"partition"}


def test_a_kind_of_fault_that_was_always_over_too_soon_is_said() -> None:
    assert short(*faults_of("pause")) == {
        "pause": "No fault of kind pause was longer than the 62 s that kraft takes to notice one, "
        "the longest took 2.0 s; --time-limit 180 draws longer ones."
    }
    given = msgspec.structs.replace(LATE, time_limit_s=None)
    assert "only longer ones show" in short(*faults_of("pause"), noticing=given)["pause"]


def test_one_that_lasted_is_enough_and_nobody_must_notice_a_kill() -> None:
    long = faults_of("pause", 1, invoked=20, verified=20, removed=90)
    assert short(*faults_of("pause"), *long) == {}
    assert short(*faults_of("kill")) == {}
    assert short(*faults_of("pause"), noticing=None) == {}
    assert list(short(*faults_of("partition", 2), *faults_of("pause"), *long)) == ["partition"]


def test_one_that_did_not_take_effect_is_no_short_one() -> None:
    events = [event for event in faults_of("pause") if event.phase != "verified"]
    assert short(*events) == {}


def test_people_are_told_that_faults_were_too_short() -> None:
    fault = FaultResult(0, "pause", "n3", ("n3",), verified=True, applied=True, healed=True)
    sentence = "No fault of kind pause was longer than the 62 s."
    results = results_of(fault, too_short={"pause": sentence})
    assert results.headline == "VALID"
    assert "1 fault took effect (no pause long enough to be noticed), no" in leading_sentence(
        results
    )
    assert sentence in to_markdown(results)
    assert sentence in to_junit(results).decode()
