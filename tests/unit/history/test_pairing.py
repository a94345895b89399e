import pytest

from splitbrain.history.errors import PairingError
from splitbrain.history.pairing import pair
from splitbrain.history.records import Event


def event(index: int, process: int, type_: str, f: str = "write", **fields: object) -> Event:
    values: dict = {"time": index * 10, "key": "a", "value": None, **fields}
    return Event(index=index, process=process, type=type_, f=f, **values)  # type: ignore[arg-type]


def test_an_operation_takes_its_argument_and_start_from_the_invocation_and_its_result_from_ok() -> (
    None
):
    operations = pair(
        [
            event(0, 1, "invoke", "read", node="n1"),
            event(1, 1, "ok", "read", value=7, node="n2", position=(3, 9)),
        ]
    )
    (operation,) = operations
    assert (operation.index, operation.start, operation.end) == (0, 0, 10)
    assert (operation.argument, operation.result, operation.type) == (None, 7, "ok")
    assert (operation.node, operation.position) == ("n2", (3, 9))


def test_operations_come_in_the_order_of_their_invocation() -> None:
    operations = pair(
        [
            event(0, 1, "invoke"),
            event(1, 2, "invoke"),
            event(2, 2, "ok"),
            event(3, 1, "ok"),
        ]
    )
    assert [operation.process for operation in operations] == [1, 2]


def test_fail_is_kept_with_its_error_and_without_result() -> None:
    (operation,) = pair(
        [event(0, 1, "invoke", value=1), event(1, 1, "fail", value=1, error="refused")]
    )
    assert (operation.type, operation.error, operation.result, operation.end) == (
        "fail",
        "refused",
        None,
        10,
    )


def test_info_is_open_and_has_no_end() -> None:
    (operation,) = pair([event(0, 1, "invoke"), event(1, 1, "info", error="timed-out")])
    assert (operation.type, operation.end, operation.error) == ("info", None, "timed-out")


def test_an_invocation_without_completion_becomes_info() -> None:
    (operation,) = pair([event(0, 1, "invoke", value=4)])
    assert (operation.type, operation.end, operation.argument) == ("info", None, 4)


def test_final_reads_are_marked() -> None:
    (operation,) = pair(
        [event(0, 1, "invoke", "read", final=True), event(1, 1, "ok", "read", final=True)]
    )
    assert operation.final


def test_a_process_may_work_again_after_ok_and_fail() -> None:
    operations = pair(
        [
            event(0, 1, "invoke"),
            event(1, 1, "ok"),
            event(2, 1, "invoke"),
            event(3, 1, "fail"),
            event(4, 1, "invoke"),
        ]
    )
    assert [operation.type for operation in operations] == ["ok", "fail", "info"]


@pytest.mark.parametrize(
    ("events", "index", "words"),
    [
        ([event(0, 1, "invoke"), event(1, 1, "invoke")], 1, "while its write"),
        ([event(4, 1, "ok")], 4, "has invoked nothing"),
        ([event(0, 1, "invoke"), event(1, 1, "info"), event(2, 1, "invoke")], 2, "retired"),
        ([event(0, 1, "invoke"), event(1, 1, "info"), event(2, 1, "ok")], 2, "retired"),
        ([event(0, 1, "invoke"), event(1, 1, "ok", "read")], 1, "completes read"),
        ([event(0, 1, "invoke"), event(1, 1, "ok", key="b")], 1, "of key b"),
        ([event(1, 1, "invoke"), event(1, 2, "invoke")], 1, "does not come after"),
        ([event(0, 1, "invoke", time=9), event(1, 1, "ok", time=8)], 1, "before its invocation"),
    ],
)
def test_events_that_break_the_rules_are_refused_by_index(
    events: list[Event], index: int, words: str
) -> None:
    with pytest.raises(PairingError, match=words) as raised:
        pair(events)
    assert raised.value.index == index
