from collections.abc import Callable

import pytest

from splitbrain.nodes.quorum.events import ReadId
from splitbrain.nodes.quorum.identifiers import UNKNOWN_OFFSET, ConnectionId, NodeId, Offset
from splitbrain.nodes.quorum.linearizable_reads import LinearizableReads
from tests.unit.nodes.quorum.replicas import voter_set

TO_2, TO_3, NEW = ConnectionId(2), ConnectionId(3), ConnectionId(9)
TWO, THREE = NodeId(2), NodeId(3)


def reads_of(count: int) -> LinearizableReads:
    return LinearizableReads(voter_set(count))


def ready(reads: LinearizableReads) -> list[int]:
    return [read.read_id for read in reads.take_ready()]


@pytest.mark.parametrize(
    ("acts", "is_ready"),
    [
        ("answer ask fetch", False),  # the fetch was already on its way
        ("ask answer fetch", True),
        ("ask answer fetch-elsewhere", False),
        ("ask answer close fetch", False),
    ],
)
def test_a_fetch_confirms_after_an_answer_after_the_read_on_its_own_connection(
    acts: str, is_ready: bool
) -> None:
    reads = reads_of(3)
    perform: dict[str, Callable[[], None]] = {
        "ask": lambda: reads.ask(ReadId(1), Offset(5)),
        "answer": lambda: reads.answered(TO_2),
        "close": lambda: reads.closed(TO_2),
        "fetch": lambda: reads.fetched(TWO, TO_2),
        "fetch-elsewhere": lambda: reads.fetched(TWO, NEW),
    }
    for act in acts.split():
        perform[act]()
    assert ready(reads) == ([1] if is_ready else [])
    assert reads.needs(TWO) is not is_ready


def test_five_voters_need_two_others() -> None:
    reads = reads_of(5)
    reads.ask(ReadId(1), Offset(5))
    reads.answered(TO_2)
    reads.answered(TO_3)
    reads.fetched(TWO, TO_2)
    assert ready(reads) == []
    reads.fetched(THREE, TO_3)
    assert ready(reads) == [1]


def test_one_round_confirms_every_read_asked_before_it_and_none_after() -> None:
    reads = reads_of(3)
    reads.ask(ReadId(1), Offset(5))
    reads.ask(ReadId(2), Offset(6))
    reads.answered(TO_2)
    reads.ask(ReadId(3), Offset(6))
    reads.fetched(TWO, TO_2)
    assert ready(reads) == [1, 2]
    assert reads.pending_count == 1


def test_a_confirmed_read_still_waits_for_the_first_own_commit() -> None:
    reads = reads_of(3)
    reads.ask(ReadId(1), UNKNOWN_OFFSET)
    reads.answered(TO_2)
    reads.fetched(TWO, TO_2)
    assert ready(reads) == []
    reads.first_commit(Offset(7))
    assert [(read.read_id, read.offset) for read in reads.take_ready()] == [(1, 7)]


def test_a_single_voter_needs_nobody() -> None:
    reads = reads_of(1)
    reads.ask(ReadId(1), Offset(1))
    assert ready(reads) == [1]


def test_every_read_is_given_up_once() -> None:
    reads = reads_of(3)
    reads.ask(ReadId(1), Offset(1))
    assert [read.read_id for read in reads.take_all()] == [1]
    assert reads.take_all() == []
