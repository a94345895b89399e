"""The error table: what is certain, and what must not be called so (design, section 4)."""

import pytest

from splitbrain.contracts.operations import Operation
from splitbrain.nodes.transport.client_protocol import AnswerOutcome, ClientAnswer
from splitbrain.systems.kraft import outcomes

READ = Operation("read", "k", None)
CHANGES = [
    Operation("write", "k", 1),
    Operation("cas", "k", [1, 2]),
    Operation("add", "k", 1),
    Operation("create", "t", 3),
    Operation("delete", "t", None),
]


@pytest.mark.parametrize("operation", CHANGES, ids=lambda operation: operation.f)
@pytest.mark.parametrize("error", [outcomes.LOST, outcomes.TIMED_OUT])
def test_an_unanswered_change_is_unknown(operation: Operation, error: str) -> None:
    assert outcomes.unanswered(operation, error, "n1").type == "info"


def test_an_unanswered_read_did_not_happen() -> None:
    assert outcomes.unanswered(READ, outcomes.TIMED_OUT, "n1").type == "fail"


@pytest.mark.parametrize("operation", CHANGES, ids=lambda operation: operation.f)
@pytest.mark.parametrize("outcome", sorted(outcomes.ERROR_CLASSES))
def test_a_change_fails_only_for_certain(operation: Operation, outcome: AnswerOutcome) -> None:
    certain = outcomes.answered(operation, ClientAnswer(1, outcome, definite=True), "n1")
    uncertain = outcomes.answered(operation, ClientAnswer(1, outcome, definite=False), "n1")
    assert (certain.type, uncertain.type) == ("fail", "info")
    assert certain.error == uncertain.error == outcomes.ERROR_CLASSES[outcome]


def test_a_refused_cas_happened_and_says_so() -> None:
    answer = ClientAnswer(1, "ok", definite=True, result=False, epoch=2, offset=9)
    completion = outcomes.answered(Operation("cas", "k", [1, 2]), answer, "n1")
    assert (completion.type, completion.value) == ("ok", [1, 2, False])
    assert completion.position == (2, 9)


def test_a_write_carries_its_place_and_a_read_none() -> None:
    answer = ClientAnswer(1, "ok", definite=True, result=5, epoch=2, offset=9)
    assert outcomes.answered(Operation("write", "k", 7), answer, "n1").position == (2, 9)
    assert outcomes.answered(READ, answer, "n1").position is None
    assert outcomes.answered(READ, answer, "n1").value == 5


def test_what_was_never_sent_certainly_did_not_happen() -> None:
    assert outcomes.certainly_not("not-sent", None).type == "fail"


@pytest.mark.parametrize("f", ["describe", "view"])
def test_what_is_asked_of_topics_and_not_answered_did_not_happen(f: str) -> None:
    asked = Operation(f, "t", None)
    assert outcomes.unanswered(asked, outcomes.TIMED_OUT, "n4").type == "fail"
    assert outcomes.may_go_on(asked, outcomes.unanswered(asked, outcomes.LOST, "n4"))


def test_a_fenced_broker_is_certain_that_it_answered_nothing() -> None:
    answer = ClientAnswer(1, "fenced", definite=True)
    completion = outcomes.answered(Operation("view", "t", None), answer, "n4")
    assert (completion.type, completion.error) == ("fail", "fenced")


def test_a_view_carries_what_was_shown_and_the_image_s_offset() -> None:
    answer = ClientAnswer(1, "ok", definite=True, result=None, offset=12)
    completion = outcomes.answered(Operation("view", "t", None), answer, "n4")
    assert (completion.type, completion.value, completion.position) == ("ok", [None, 12], None)
    answer = ClientAnswer(1, "ok", definite=True, result=3, epoch=2, offset=12)
    assert outcomes.answered(Operation("describe", "t", None), answer, "n1").value == 3


@pytest.mark.parametrize(
    ("asked", "told", "value"),
    [
        (Operation("create", "t", 3), True, [3, True]),
        (Operation("create", "t", 3), False, [3, False]),
        (Operation("delete", "t", None), True, True),
        (Operation("delete", "t", None), False, False),
    ],
)
def test_a_change_of_topics_says_if_it_was_made_and_where(
    asked: Operation, told: bool, value: object
) -> None:
    answer = ClientAnswer(1, "ok", definite=True, result=told, epoch=2, offset=9)
    completion = outcomes.answered(asked, answer, "n1")
    assert (completion.type, completion.value) == ("ok", value)
    assert completion.position == ((2, 9) if told else None)
