"""A broker and its controller without a loop: what it says at every turn, and each planted bug."""

from collections.abc import Callable

import pytest

from splitbrain.nodes.broker.lifecycle import BrokerState
from splitbrain.nodes.server.host import exit_codes
from splitbrain.nodes.transport.client_protocol import NodeState
from splitbrain.nodes.wire.families.brokers import BrokerRegistrationRequest
from tests.planted import with_bug
from tests.unit.nodes.server.worlds_together import Together

FIRST, SECOND = 201, 202
SECOND_US = 1_000_000


def describes_what_it_may(together: Together) -> bool:
    """Whether each broker that describes topics is unfenced in its own image, with its epoch."""
    for node_id in (FIRST, SECOND):
        if together.members[node_id].node is None:
            continue
        (answer,) = together.handed_in(node_id, "describe-topic")
        lifecycle = together.members[node_id].broker.lifecycle
        own = lifecycle.image.brokers.get(node_id)
        may = own is not None and not own.fenced and own.broker_epoch == lifecycle.broker_epoch
        if answer.outcome == "ok" and not may:
            return False
        assert answer.outcome in {"ok", "fenced"}
    return True


def always(
    together: Together, holds: Callable[[Together], bool], until: Callable[[], bool]
) -> bool:
    """Whether something holds at every turn until something else comes about."""
    for _ in range(50_000):
        if not holds(together):
            return False
        if until():
            return True
        assert together.turn()
    raise AssertionError("it did not come about")


def both_run(together: Together) -> Callable[[], bool]:
    return lambda: all(
        together.members[each].broker.lifecycle.state is BrokerState.RUNNING
        and not together.members[each].image.brokers[each].fenced
        for each in (FIRST, SECOND)
    )


def test_brokers_begin_to_serve_and_hand_on_changes() -> None:
    together = Together(FIRST, SECOND)
    together.running(FIRST, SECOND)
    created = together.ask(FIRST, "create-topic", "t", 3)
    assert (created.outcome, created.definite, created.result) == ("ok", True, True)
    again = together.ask(SECOND, "create-topic", "t", 3)
    assert (again.outcome, again.definite, again.result) == ("ok", True, False)
    image = together.controller.image
    for node_id in (FIRST, SECOND):
        together.until(lambda node_id=node_id: "t" in described_names(together, node_id))
        answer = together.ask(node_id, "describe-topic")
        assert answer.result == 3
        assert answer.offset == together.members[node_id].image.provenance.end_offset
        status = together.ask(node_id, "status").result
        assert isinstance(status, NodeState)
        assert (status.broker_state, status.is_fenced) == ("RUNNING", False)
        assert status.broker_epoch == image.brokers[node_id].broker_epoch


def described_names(together: Together, node_id: int) -> set[str]:
    return set(together.members[node_id].broker.lifecycle.image.topics.ids_by_name)


@pytest.mark.parametrize(
    "holds",
    [
        True,
        with_bug("fenced-broker-serves", False),
        with_bug("own-registration-not-awaited", False),
    ],
)
def test_a_broker_describes_nothing_before_its_own_image_has_it_unfenced(holds: bool) -> None:
    together = Together(FIRST, SECOND)
    assert always(together, describes_what_it_may, both_run(together)) is holds


@pytest.mark.parametrize("holds", [True, with_bug("older-image-shown", False)])
def test_a_broker_never_describes_an_older_state_than_before(holds: bool) -> None:
    together = Together(FIRST, SECOND)
    together.until(both_run(together))
    seen = [-1]

    def goes_on(_: Together) -> bool:
        (answer,) = together.handed_in(FIRST, "describe-topic", "t2")
        if answer.outcome == "ok":
            seen.append(answer.offset)
        return seen[-1] >= max(seen)

    is_right = True
    for number in range(4):
        end_us = together.controller.time_us + SECOND_US
        is_over = lambda end_us=end_us: together.controller.time_us >= end_us  # noqa: E731
        is_right = always(together, goes_on, is_over) and is_right
        together.handed_in(SECOND, "create-topic", f"t{number}", 1)
    assert is_right is holds
    assert len(set(seen)) > 2


@pytest.mark.parametrize("holds", [True, with_bug("clean-stop-kept", False)])
def test_only_the_life_before_tells_its_epoch_and_only_if_it_ended_cleanly(holds: bool) -> None:
    together = Together(FIRST, SECOND)
    together.running(FIRST, SECOND)
    member = together.members[FIRST]
    epochs: list[int] = []

    def registered() -> BrokerRegistrationRequest:
        calls = [each for each in member.calls if isinstance(each, BrokerRegistrationRequest)]
        return calls[-1]

    def begin_again() -> None:
        member.calls.clear()
        together.start(FIRST)
        together.running(FIRST)
        epochs.append(member.broker.lifecycle.broker_epoch)

    assert registered().previous_broker_epoch == -1
    first_epoch = member.broker.lifecycle.broker_epoch
    member.at_work().stop()
    together.until(lambda: bool(member.ends))
    assert member.ends == [(exit_codes.STOPPED, "asked to stop")]
    member.at_work().close()
    member.crash()
    begin_again()
    assert registered().previous_broker_epoch == first_epoch
    together.crash(FIRST)
    begin_again()
    is_right = registered().previous_broker_epoch == -1
    assert is_right is holds
    assert epochs[1] > epochs[0] > first_epoch


def test_a_broker_that_is_cut_off_refuses_once_it_has_heard_that_it_was_fenced() -> None:
    together = Together(FIRST, SECOND)
    together.running(FIRST, SECOND)
    member = together.members[FIRST]
    member.is_cut = True
    together.until(lambda: together.controller.image.brokers[FIRST].fenced)
    # Nobody has told it yet.
    assert together.ask(FIRST, "describe-topic").outcome == "ok"
    member.is_cut = False
    together.until(lambda: member.broker.lifecycle.image.brokers[FIRST].fenced)
    assert together.ask(FIRST, "describe-topic").outcome == "fenced"
    together.running(FIRST)
    assert together.ask(FIRST, "describe-topic").outcome == "ok"


def test_a_broker_that_no_controller_lets_go_goes_when_its_patience_is_over() -> None:
    together = Together(FIRST, SECOND)
    together.running(FIRST, SECOND)
    member = together.members[FIRST]
    member.is_cut = True
    began = member.time_us
    member.at_work().stop()
    waiting = together.handed_in(FIRST, "create-topic", "t", 1)
    together.until(lambda: bool(member.ends))
    assert [code for code, _ in member.ends] == [exit_codes.STOPPED]
    patience_us = member.broker.lifecycle._settings.controlled_shutdown_timeout  # pyright: ignore[reportPrivateUsage]
    assert patience_us <= member.time_us - began <= patience_us + 2 * SECOND_US
    assert [(each.outcome, each.definite) for each in waiting] == [("unknown", False)]


def test_a_broker_that_nobody_registers_ends_with_an_error() -> None:
    together = Together(FIRST)
    member = together.members[FIRST]
    member.is_cut = True
    together.until(lambda: bool(member.ends))
    assert [code for code, _ in member.ends] == [exit_codes.UNUSABLE]
    assert member.time_us >= 60 * SECOND_US


def test_what_is_asked_of_a_broker_and_is_none_of_its_business_is_refused() -> None:
    together = Together(FIRST)
    together.running(FIRST)
    for kind, value in (("read", None), ("create-topic", "many")):
        refused = together.ask(FIRST, kind, "t", value)
        assert (refused.outcome, refused.definite) == ("invalid-request", True)
    together.members[FIRST].broker.stop()
    assert together.ask(FIRST, "describe-topic").outcome == "stopping"


def test_a_replica_that_left_the_isr_is_proposed_for_it_again() -> None:
    together = Together(FIRST, SECOND)
    together.running(FIRST, SECOND)
    together.ask(FIRST, "create-topic", "t", 4)

    def isrs() -> list[int]:
        topic = together.controller.image.topics.named("t")
        assert topic is not None
        return [len(each.isr) for each in topic.partitions]

    together.crash(SECOND)
    together.until(lambda: isrs() == [1, 1, 1, 1])
    together.start(SECOND)
    together.until(lambda: isrs() == [2, 2, 2, 2])
