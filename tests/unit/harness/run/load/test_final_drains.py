"""Final operations that take: asked until nothing comes any more, and never for ever."""

from collections import deque
from collections.abc import Sequence

import pytest

from splitbrain.contracts.operations import Completion, Operation
from splitbrain.harness.run.load import reading as reading_module
from splitbrain.harness.run.load.reading import Reading

FAILED = Completion("fail", error="refused")
OPEN = Completion("info", error="timeout")


def drain(key: str) -> Operation:
    return Operation("dequeue", key, None, drains=True)


def taken_by(
    reading: Reading, queues: dict[str, Sequence[object]]
) -> tuple[list[tuple[str | None, object]], list[int]]:
    """Let the reader ask until it is done; what it was answered, and how long it waited before.

    A queue answers one after the other, then that it is empty.
    """
    left = {key: deque(answers) for key, answers in queues.items()}
    answers: list[tuple[str | None, object]] = []
    pauses: list[int] = []
    while (operation := reading.next) is not None:
        assert operation.key is not None
        queue = left[operation.key]
        answer = queue.popleft() if queue else None
        pauses.append(reading.pause_us)
        completion = answer if isinstance(answer, Completion) else Completion("ok", answer)
        answers.append((operation.key, "?" if completion.type != "ok" else completion.value))
        reading.took(completion)
    return answers, pauses


def test_a_queue_is_taken_empty_and_found_so_three_times() -> None:
    reading = Reading("leader", [drain("a")])
    answers, pauses = taken_by(reading, {"a": [3, 1, 0, 2]})
    assert [value for _, value in answers] == [3, 1, 0, 2, None, None, None]
    assert reading.unsettled_count == 0
    # It waits before it looks again, and not while something comes.
    assert pauses == [0, 0, 0, 0, 0, 200_000, 200_000]


def test_what_comes_back_late_is_taken_and_the_row_begins_anew() -> None:
    reading = Reading("pinned", [drain("a")])
    answers, _ = taken_by(reading, {"a": [1, None, None, 2]})
    assert [value for _, value in answers] == [1, None, None, 2, None, None, None]
    assert reading.unsettled_count == 0


def test_many_queues_wait_together_and_not_one_after_the_other() -> None:
    reading = Reading("leader", [drain("a"), drain("b")])
    answers, pauses = taken_by(reading, {"a": [1], "b": [2, None, 3]})
    assert answers == [
        *(("a", 1), ("a", None), ("b", 2), ("b", None)),
        *(("a", None), ("b", 3), ("b", None)),
        *(("a", None), ("b", None), ("b", None)),
    ]
    assert pauses[4:6] == [100_000, 100_000]
    assert reading.settled_count == 2


def test_an_operation_that_only_reads_is_settled_by_its_first_answer() -> None:
    reading = Reading("leader", [Operation("read", "a", None)])
    answers, _ = taken_by(reading, {"a": [None]})
    assert answers == [("a", None)]
    assert reading.settled_count == 1


@pytest.mark.parametrize("lost", [FAILED, OPEN])
def test_a_try_without_an_answer_begins_the_row_anew(lost: Completion) -> None:
    reading = Reading("leader", [drain("a")])
    answers, _ = taken_by(reading, {"a": [None, None, lost]})
    assert [value for _, value in answers] == [None, None, "?", None, None, None]
    assert reading.settled_count == 1


def test_a_reader_that_gives_up_has_not_settled_it() -> None:
    leader, pinned = Reading("leader", [drain("a"), drain("b")]), Reading("pinned", [drain("a")])
    taken_by(leader, {"a": [1, *[FAILED] * 5], "b": []})
    assert (leader.settled_count, leader.unsettled_count) == (0, 2)
    answers, _ = taken_by(pinned, {"a": [1, None, OPEN]})
    assert [value for _, value in answers] == [1, None, "?"]
    assert pinned.unsettled_count == 1


def test_a_queue_that_hands_out_one_element_for_ever_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading_module, "TAKES_MAX", 50)
    reading = Reading("pinned", [drain("a"), drain("b")])
    answers, _ = taken_by(reading, {"a": [7] * 60, "b": [1]})
    assert answers[:51] == [("a", 7)] * 50 + [("b", 1)]
    assert (reading.settled_count, reading.unsettled_count) == (1, 1)
