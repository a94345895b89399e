import pytest

from splitbrain.history.errors import PairingError
from splitbrain.history.pairing import pair
from splitbrain.history.records import Event


def event(index: int, process: int, type_: str, f: str = "write", **fields: object) -> Event:
    values: dict = {"time": index * 10, "key": "a", "value": None, **fields}
    return Event(index=index, process=process, type=type_, f=f, **values)  # type: ignore[arg-type]


INVOKE = event(0, 1, "invoke", value=4)


def test_argument_and_start_are_of_the_invocation_and_the_result_is_of_its_ok() -> None:
    answer = event(1, 1, "ok", "read", value=7, node="n2", position=(3, 9))
    (operation,) = pair([event(0, 1, "invoke", "read", node="n1"), answer])
    assert (operation.index, operation.start, operation.end) == (0, 0, 10)
    assert (operation.argument, operation.result, operation.type) == (None, 7, "ok")
    assert (operation.node, operation.position) == ("n2", (3, 9))


def test_operations_come_in_the_order_of_their_invocation() -> None:
    events = [INVOKE, event(1, 2, "invoke"), event(2, 2, "ok"), event(3, 1, "ok")]
    assert [operation.process for operation in pair(events)] == [1, 2]


@pytest.mark.parametrize(
    ("completion", "type_", "end", "error"),
    [
        ([event(1, 1, "fail", value=4, error="refused")], "fail", 10, "refused"),
        ([event(1, 1, "info", error="timed-out")], "info", None, "timed-out"),
        ([], "info", None, "never-completed"),
    ],
)
def test_without_ok_there_is_no_result_and_after_info_no_end(
    completion: list[Event], type_: str, end: int | None, error: str
) -> None:
    (operation,) = pair([INVOKE, *completion])
    assert (operation.argument, operation.result) == (4, None)
    assert (operation.type, operation.end, operation.error) == (type_, end, error)


def test_final_reads_are_marked() -> None:
    final = [event(n, 1, type_, "read", final=True) for n, type_ in enumerate(("invoke", "ok"))]
    (operation,) = pair(final)
    assert operation.final


def test_a_process_may_work_again_after_ok_and_fail() -> None:
    types = enumerate(("invoke", "ok", "invoke", "fail", "invoke"))
    operations = pair([event(index, 1, type_) for index, type_ in types])
    assert [operation.type for operation in operations] == ["ok", "fail", "info"]


@pytest.mark.parametrize(
    ("events", "index", "problem"),
    [
        ([INVOKE, event(1, 1, "invoke")], 1, "while its write"),
        ([event(4, 1, "ok")], 4, "has invoked nothing"),
        ([INVOKE, event(1, 1, "info"), event(2, 1, "invoke")], 2, "retired"),
        ([INVOKE, event(1, 1, "info"), event(2, 1, "ok")], 2, "retired"),
        ([INVOKE, event(1, 1, "ok", "read")], 1, "completes read"),
        ([INVOKE, event(1, 1, "ok", key="b")], 1, "of key b"),
        ([event(1, 1, "invoke"), event(1, 2, "invoke")], 1, "does not come after"),
        ([event(0, 1, "invoke", time=9), event(1, 1, "ok", time=8)], 1, "before its invocation"),
    ],
)
def test_events_that_break_the_rules_are_refused_by_index(
    events: list[Event], index: int, problem: str
) -> None:
    with pytest.raises(PairingError, match=problem) as raised:
        pair(events)
    assert raised.value.index == index
