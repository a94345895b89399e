"""A small failing run in words."""

import msgspec

from splitbrain.contracts.fault import Awaited, Fault, FaultEvent
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import LoadOptions, Scenario, Violation
from splitbrain.harness.campaign.shrinking.description import (
    Result,
    Size,
    change,
    fault_lines,
    headline,
    size_of,
    story,
    to_be_continued,
    unusual_parts,
)
from splitbrain.harness.folder.simulation_outcome import JudgedOutcome
from splitbrain.history.records import Event
from tests.unit.harness.small_worlds import outcome

SCENARIO = Scenario(
    system="any",
    seed=1,
    bugs=("a-bug",),
    segment_bytes=300,
    load=LoadOptions(clients=2),
    faults=(
        Fault(4, "kill", "leader", 250_000, 40_000, 0),
        Fault(9, "reset", "there", 0, 0, 0, when=Awaited("leads", count=2, delay_us=500)),
    ),
)


def events(operations: int) -> tuple[Event, ...]:
    made: list[Event] = []
    for n in range(operations):
        time, process = n * 10_000_000, n % 2
        made += [
            Event(2 * n, time, process, "invoke", "write", "r1", n),
            Event(2 * n + 1, time + 5_000_000, process, "ok", "write", "r1", n),
        ]
    made += [
        Event(90, 900_000_000, 0, "invoke", "read", "r1", None),
        Event(91, 901_000_000, 0, "ok", "read", "r1", 3),
        Event(92, 902_000_000, 1, "invoke", "read", "r1", None),
        Event(93, 903_000_000, 1, "fail", "read", "r1", None, error="not-leader"),
        Event(94, 904_000_000, 0, "invoke", "write", "r1", 8),
        Event(96, 990_000_000, 1, "invoke", "read", "r1", None, final=True),
    ]
    return tuple(msgspec.structs.replace(one, index=place) for place, one in enumerate(made))


def judged(operations: int = 1) -> JudgedOutcome:
    made = outcome(
        scenario=SCENARIO,
        violation=Violation("INV-04", "two lead", 1_500, 7, NodeName("n2")),
        events=events(operations),
        faults=(FaultEvent(251_000_000, 4, "kill", "invoked", "leader", nodes=(NodeName("n3"),)),),
    )
    return JudgedOutcome(outcome=made, checks=())


def test_faults_and_operations_are_told_with_their_moments() -> None:
    *told, last = story(judged(), 4)
    assert told == [
        "  fault 4: kill of leader, at 250 ms for 40 ms; struck n3 at 251.0 ms",
        "  fault 9: reset of there, after 'leads' 2 times, 0.5 ms later; it did not strike",
        "  client 0: write r1 0 at 0.0 ms -> ok",
        "  client 0: read r1 at 900.0 ms -> 3",
        "  client 1: read r1 at 902.0 ms -> fail (not-leader)",
        "  client 0: write r1 8 at 904.0 ms -> info (never-completed)",
        "  not as by default: segment bytes",
        "  planted: a-bug",
    ]
    assert last.startswith("INV-04: two lead")


def test_what_comes_after_the_heal_is_not_told_and_many_operations_are_only_counted() -> None:
    assert sum(line.startswith("  client") for line in story(judged(), 2)) == 2
    lines = story(judged(30), 33)
    assert sum(line.startswith("  client") for line in lines) == 20
    assert "  and 13 more operations" in lines


def test_unusual_weather_is_named() -> None:
    scenario = msgspec.structs.replace(SCENARIO, drift_ppm=(1, 2), settings={"a": "b"})
    assert unusual_parts(scenario) == ["drift ppm", "segment bytes", "settings"]


def test_a_fault_is_told_with_its_options_and_the_time_from_which_on_it_waits() -> None:
    waiting = Fault(
        3, "delay", "there", 1_500_000, 7_000, 0, {"delay_ms": 9}, Awaited("leads", count=2)
    )
    assert fault_lines(msgspec.structs.replace(SCENARIO, faults=(waiting,))) == [
        "  fault 3: delay of there {'delay_ms': 9}, after 'leads' 2 times, from 1500 ms on for 7 ms"
    ]
    assert fault_lines(msgspec.structs.replace(SCENARIO, faults=())) == ["  no fault is needed"]


def test_the_headline_says_how_far_the_search_came() -> None:
    before = Size(faults=11, operations=214, load_us=3_000_000, nodes=5, clients=5)
    after = Size(faults=2, operations=6, load_us=750_000, nodes=3, clients=1)
    done = Result(before=before, after=after, is_minimal=True, tries="1,128 replays")
    assert change(before, after) == "faults 11 -> 2, operations 214 -> 6"
    assert headline(done, None, 3.25) == (
        "faults 11 -> 2, operations 214 -> 6, seconds 3 -> 0.75, nodes 5 -> 3, clients 5 -> 1; "
        "none of them can go alone (1,128 replays, 3.2 s)."
    )
    cut = msgspec.structs.replace(done, is_minimal=False)
    assert "; some may still go; cut short: 5 s are over (" in headline(cut, "5 s are over", 5.0)
    assert "; some may still go (" in headline(cut, None, 5.0)


def test_the_headline_of_runs_says_how_often_it_failed() -> None:
    before = size_of(SCENARIO)
    after = msgspec.structs.replace(before, faults=0)
    done = Result(
        before=before,
        after=after,
        is_minimal=True,
        tries="3 plans, 6 runs",
        evidence="failed with the same verdict in 2 of 2 tries",
    )
    assert before.text == "2 faults, 3 s, 3 nodes, 2 clients"
    assert headline(done, None, 1_000.0) == (
        "faults 2 -> 0, seconds 3 -> 3, nodes 3 -> 3, clients 2 -> 2; it takes none of them; "
        "failed with the same verdict in 2 of 2 tries (3 plans, 6 runs, 1,000.0 s)."
    )


def test_a_search_that_ended_early_says_how_to_go_on() -> None:
    assert to_be_continued(None, "FOLDER") is None
    goes_on = "`splitbrain shrink FOLDER` goes on from here"
    assert to_be_continued("interrupted", "FOLDER") == f"interrupted; {goes_on}"
    assert to_be_continued("5 s are over", "FOLDER") == f"cut short, for 5 s are over; {goes_on}"
