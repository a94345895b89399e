"""The load's machine without anything that carries it: timetable, seat, final reads."""

import math
from collections.abc import Sequence

import msgspec
import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation, Outcome
from splitbrain.contracts.system import Route
from splitbrain.harness.run.load.reading import Reading
from splitbrain.harness.run.load.seat import Books, Processes, Seat
from splitbrain.harness.run.load.timetable import SlotTimes, Timetable
from splitbrain.harness.run.traffic import Traffic
from splitbrain.history.functions import USUAL
from splitbrain.history.records import Event
from tests.unit.harness.ended_operations import Recorded

READ = Operation("read", "x", None)
WRITE = Operation("write", "x", 1)
#: 4 slots at 40 operations a second: one of each slot every 100 ms, in turns of 25 ms.
TABLE = Timetable(4, 40.0)


def begun(times: SlotTimes, took_us: Sequence[int]) -> list[int]:
    """When operations begin that take so long."""
    now_us, moments = 0, list[int]()
    for duration_us in took_us:
        due_us = times.due_us(now_us)
        if due_us is None:
            break
        now_us = max(now_us, due_us)
        times.begin(now_us)
        moments.append(now_us)
        now_us += duration_us
    return moments


def test_a_slot_keeps_to_its_own_moments() -> None:
    assert begun(SlotTimes(TABLE, 1), [1_000] * 3) == [25_000, 125_000, 225_000]
    assert begun(SlotTimes(TABLE, 1, offset_us=7), [1_000] * 2) == [25_007, 125_007]


def test_who_lost_time_catches_up_at_a_third_of_the_distance() -> None:
    # 200 ms late after the first; then every 33.3 ms until the timetable is met again.
    moments = begun(SlotTimes(TABLE, 0), [300_000, *[0] * 5])
    assert moments == [0, 300_000, 333_333, 366_666, 400_000, 500_000]


def test_as_many_as_there_can_be_are_due_at_once() -> None:
    assert begun(SlotTimes(Timetable(4, math.inf), 3), [5, 5, 5]) == [0, 5, 10]


def test_what_is_left_out_moves_no_other() -> None:
    kept = Timetable(4, 40.0, kept={(1, 0), (1, 2), (3, 1)})
    assert begun(SlotTimes(kept, 1), [1_000] * 9) == [25_000, 225_000]
    assert begun(SlotTimes(kept, 3), [1_000] * 9) == [175_000]
    assert begun(SlotTimes(kept, 0), [1_000] * 9) == []
    assert begun(SlotTimes(Timetable(4, 40.0, limit=2), 0), [1_000] * 9) == [0, 100_000]


def test_a_demanded_slot_goes_on_without_an_end() -> None:
    times = SlotTimes(Timetable(4, 40.0, limit=1), 0)
    begun(times, [1_000])
    assert times.due_us(500_000) is None
    times.demand(500_000, is_idle=True)
    assert times.due_us(500_000) == 500_000
    # The operation that is due now, so that it works on the keys of the others.
    assert times.begin(500_000) == 5
    assert times.due_us(501_000) == 520_000
    times.demand(501_000, is_idle=False)
    assert times.begin(520_000) == 6


def seated(completions: Sequence[tuple[Outcome, int]], operation: Operation) -> list[Event]:
    """Events of operations that end so after so many ms of 100; each begins at once."""
    recorded, now = Recorded(), 0

    class Clocked:
        def append(self, *what: object, **fields: object) -> Event:
            event = recorded.append(*what, **fields)  # type: ignore[arg-type]
            return msgspec.structs.replace(event, time=now)

    books = Books(Clocked(), Traffic(), Processes(2), USUAL, 100_000)
    seat = Seat(1, Route("pinned", NodeName("n2")), books)
    for outcome, after_ms in completions:
        seat.begin(operation)
        now += after_ms * 1_000_000
        seat.end(Completion(outcome))
    return recorded.events


@pytest.mark.parametrize(
    ("operation", "outcome", "after_ms", "recorded", "is_retired"),
    [
        (WRITE, "ok", 99, "ok", False),
        (WRITE, "fail", 89, "fail", False),
        # Too late for a refusal: something of it may still be under way.
        (WRITE, "fail", 90, "fail", True),
        (WRITE, "info", 0, "info", True),
        (READ, "info", 0, "fail", True),
        (READ, "fail", 1, "fail", False),
    ],
)
def test_a_process_is_retired_where_a_late_answer_may_come(
    operation: Operation, outcome: Outcome, after_ms: int, recorded: str, is_retired: bool
) -> None:
    events = seated([(outcome, after_ms), ("ok", 0)], operation)
    assert [event.type for event in events] == ["invoke", recorded, "invoke", "ok"]
    assert [event.process for event in events] == [1, 1, *[3 if is_retired else 1] * 2]
    assert {event.node for event in events} == {"n2"}


def read(kind: str, outcomes: str) -> tuple[str, int]:
    """Keys that were asked for, and how many stay unsettled; an outcome for each try."""
    reading = Reading(kind, [Operation("read", key, None) for key in "abcdef"])
    asked = ""
    for outcome in outcomes:
        operation = reading.next
        if operation is None:
            break
        asked += str(operation.key)
        reading.took(Completion("ok" if outcome == "+" else "fail"))
    assert reading.next is None
    return asked, reading.unsettled_count


@pytest.mark.parametrize(
    ("kind", "outcomes", "asked", "unsettled"),
    [
        ("leader", "++++++", "abcdef", 0),
        ("leader", "-+----+++++", "aabbbbbcdef", 0),
        ("leader", "+-----+", "abbbbb", 5),
        ("pinned", "+-+--+", "abcdef", 3),
        ("pinned", "+---+", "abcd", 5),
    ],
)
def test_a_reader_goes_on_as_long_as_it_may(
    kind: str, outcomes: str, asked: str, unsettled: int
) -> None:
    assert read(kind, outcomes) == (asked, unsettled)


def test_a_reader_waits_longer_after_each_try_that_settled_nothing() -> None:
    reading = Reading("leader", [Operation("read", key, None) for key in "ab"])
    pauses: list[int] = []
    for outcome in ("fail", "fail", "ok", "fail"):
        pauses.append(reading.pause_us)
        reading.took(Completion(outcome))
    assert [*pauses, reading.pause_us] == [0, 50_000, 100_000, 0, 50_000]
