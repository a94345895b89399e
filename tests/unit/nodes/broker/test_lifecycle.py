"""A broker's life as a real one's: what it asks when, and what the controller makes of it."""

from typing import Any

import pytest

from splitbrain.nodes.broker.effects import (
    AbandonRequest,
    BecameRunning,
    FindController,
    MayStop,
    SendToController,
)
from splitbrain.nodes.broker.events import (
    AnswerReceived,
    ControllerKnown,
    ImageAdvanced,
    RecoveryFinished,
    RequestFailed,
    ShutdownAsked,
    Started,
    TimerElapsed,
)
from splitbrain.nodes.broker.lifecycle import BrokerState, Lifecycle
from splitbrain.nodes.broker.settings import BROKER_FEATURES, BrokerIdentity, BrokerSettings
from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.quorum.identifiers import Microseconds
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from tests.unit.nodes.broker.broker_world import CONTROLLERS, MILLISECOND
from tests.unit.nodes.controller.clusters import image_with
from tests.unit.nodes.controller.led_cluster import listener

IDENTITY = BrokerIdentity(
    broker_id=1,
    cluster_id="c",
    incarnation_id="ab" * 16,
    listeners=(listener(),),
    directories=("bb" * 16, "aa" * 16),
    rack="r",
    previous_broker_epoch=17,
)
CONTROLLER = CONTROLLERS[0]


class Alone:
    """A life without a world: each step by hand, in milliseconds."""

    def __init__(self) -> None:
        self.lifecycle = Lifecycle(IDENTITY, BrokerSettings())
        self.sent: list[SendToController] = []

    def step(self, now_ms: float, event: Any) -> tuple[Any, ...]:
        effects = self.lifecycle.step(Microseconds(round(now_ms * MILLISECOND)), event)
        self.sent += [each for each in effects if isinstance(each, SendToController)]
        return effects

    def answer(self, now_ms: float, answer: Any) -> tuple[Any, ...]:
        return self.step(now_ms, AnswerReceived(self.sent[-1].number, answer))

    @property
    def deadline_ms(self) -> float | None:
        deadline = self.lifecycle.deadline
        return None if deadline is None else deadline / MILLISECOND

    def registered(self) -> "Alone":
        """At 0 ms, with the first heartbeat under way."""
        self.step(0, Started(MetadataImage()))
        self.step(0, ControllerKnown(CONTROLLER))
        self.answer(0, registration_answer(epoch=5))
        return self


def registration_answer(code: int = 0, epoch: int = -1) -> BrokerRegistrationResponse:
    return BrokerRegistrationResponse(throttle_time_ms=0, error_code=code, broker_epoch=epoch)


def heartbeat_answer(code: int = 0, **fields: bool) -> BrokerHeartbeatResponse:
    whole: dict[str, Any] = {"is_caught_up": False, "is_fenced": True, "should_shut_down": False}
    return BrokerHeartbeatResponse(throttle_time_ms=0, error_code=code, **(whole | fields))


def test_the_first_request_says_who_the_broker_is() -> None:
    alone = Alone()
    assert alone.step(0, Started(MetadataImage())) == (FindController(),)
    (sent,) = alone.step(1, ControllerKnown(CONTROLLER))
    assert sent.controller_id == CONTROLLER
    request = sent.request
    assert isinstance(request, BrokerRegistrationRequest)
    assert request.incarnation_id == "ab" * 16
    assert request.log_dirs == ("aa" * 16, "bb" * 16)
    assert (request.rack, request.previous_broker_epoch) == ("r", 17)
    assert not request.is_migrating_zk_broker
    assert {
        each.name: (each.min_supported_version, each.max_supported_version)
        for each in request.features
    } == BROKER_FEATURES
    assert alone.lifecycle.state is BrokerState.STARTING


def test_a_heartbeat_follows_a_registration_at_once_and_wants_a_fence() -> None:
    alone = Alone().registered()
    first = alone.sent[-1].request
    assert isinstance(first, BrokerHeartbeatRequest)
    assert (first.broker_epoch, first.current_metadata_offset) == (5, -1)
    assert first.want_fence
    assert not first.want_shut_down
    assert first.cordoned_log_dirs is None
    assert alone.lifecycle.broker_epoch == 5


def test_a_broker_that_does_not_catch_up_asks_every_ten_milliseconds() -> None:
    alone = Alone().registered()
    assert alone.answer(3, heartbeat_answer()) == ()
    assert alone.deadline_ms == 13
    assert len(alone.step(13, TimerElapsed())) == 1


@pytest.mark.parametrize(
    "code", [ApiError.DUPLICATE_BROKER_REGISTRATION, ApiError.INVALID_REGISTRATION]
)
def test_a_refused_registration_is_tried_again_after_an_interval(code: ApiError) -> None:
    alone = Alone()
    alone.step(0, Started(MetadataImage()))
    alone.step(0, ControllerKnown(CONTROLLER))
    assert alone.answer(5, registration_answer(code)) == ()
    assert alone.deadline_ms == 2005
    assert alone.step(2004, TimerElapsed()) == ()
    (again,) = alone.step(2005, TimerElapsed())
    assert again.request == alone.sent[0].request
    assert again.number > alone.sent[0].number


@pytest.mark.parametrize("code", [ApiError.STALE_BROKER_EPOCH, ApiError.BROKER_ID_NOT_REGISTERED])
def test_a_refused_heartbeat_is_only_sent_again(code: ApiError) -> None:
    alone = Alone().registered()
    alone.answer(5, heartbeat_answer(code))
    (again,) = alone.step(2005, TimerElapsed())
    assert again.request == alone.sent[1].request


def test_a_controller_that_is_none_is_forgotten_and_not_asked_again_before_a_pause() -> None:
    alone = Alone().registered()
    refused = heartbeat_answer(ApiError.NOT_CONTROLLER)
    assert alone.answer(5, refused) == (FindController(),)
    assert alone.step(6, ControllerKnown(CONTROLLER)) == ()
    assert alone.deadline_ms == 105
    assert alone.step(105, TimerElapsed()) == (FindController(),)
    (again,) = alone.step(106, ControllerKnown(CONTROLLER))
    assert again.request == alone.sent[1].request
    assert again.number == alone.sent[1].number + 1


def test_another_controller_is_asked_at_once() -> None:
    alone = Alone().registered()
    alone.step(5, RequestFailed(alone.sent[-1].number))
    (again,) = alone.step(6, ControllerKnown(CONTROLLERS[1]))
    assert again.controller_id == CONTROLLERS[1]
    # Also while nothing has failed yet.
    abandoned, moved = alone.step(7, ControllerKnown(CONTROLLERS[2]))
    assert abandoned == AbandonRequest(again.number)
    assert (moved.controller_id, moved.request) == (CONTROLLERS[2], again.request)
    assert alone.step(8, ControllerKnown(CONTROLLERS[2])) == ()


def test_an_answer_to_what_was_given_up_on_is_ignored() -> None:
    alone = Alone().registered()
    late = alone.sent[-1].number
    alone.step(5, ControllerKnown(CONTROLLERS[1]))
    answer = heartbeat_answer(is_caught_up=True, is_fenced=False)
    assert alone.step(6, AnswerReceived(late, answer)) == ()
    assert alone.step(6, RequestFailed(late)) == ()
    assert alone.lifecycle.state is BrokerState.STARTING


def test_a_request_is_given_up_after_an_interval_and_the_next_comes_after_another() -> None:
    alone = Alone().registered()
    assert alone.deadline_ms == 2000
    assert alone.step(2000, TimerElapsed()) == (AbandonRequest(alone.sent[-1].number),)
    late = AnswerReceived(alone.sent[-1].number, heartbeat_answer(is_caught_up=True))
    assert alone.step(2001, late) == ()
    assert alone.lifecycle.state is BrokerState.STARTING
    assert alone.deadline_ms == 4000
    # The controller did not answer: whoever leads is asked for anew.
    assert alone.step(4000, TimerElapsed()) == (FindController(),)


def test_a_broker_that_nobody_registers_gives_up() -> None:
    alone = Alone()
    alone.step(0, Started(MetadataImage()))
    requests_count = 0
    while (deadline := alone.deadline_ms) is not None and deadline < 60_000:
        requests_count += len(alone.step(deadline, TimerElapsed()))
    assert requests_count > 100
    (stop,) = alone.step(60_000, TimerElapsed())
    assert isinstance(stop, MayStop)
    assert (stop.clean, stop.broker_epoch) == (False, -1)
    assert alone.lifecycle.state is BrokerState.SHUTTING_DOWN
    assert alone.deadline_ms is None
    assert alone.step(60_001, ControllerKnown(CONTROLLER)) == ()


def test_a_registered_broker_never_gives_up() -> None:
    alone = Alone().registered()
    assert alone.step(70_000, TimerElapsed()) == (AbandonRequest(alone.sent[-1].number),)
    assert alone.lifecycle.state is BrokerState.STARTING


def test_a_broker_that_does_not_run_yet_stops_at_once() -> None:
    alone = Alone().registered()
    (stop,) = alone.step(5, ShutdownAsked())
    assert isinstance(stop, MayStop)
    assert (stop.clean, stop.broker_epoch) == (True, 5)


def test_settings_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        BrokerSettings(heartbeat_interval_ms=0)


def own_image(*, fenced: bool = False, epoch: int = 5) -> MetadataImage:
    known = records.RegisterBrokerRecord(
        broker_id=1,
        incarnation_id=IDENTITY.incarnation_id,
        broker_epoch=epoch,
        end_points=(),
        features=(),
        rack=None,
        fenced=fenced,
        log_dirs=IDENTITY.directories,
    )
    return image_with([known])


def running() -> Alone:
    """Unfenced by heartbeat and image; the next heartbeat is under way at 2,020 ms."""
    alone = Alone().registered()
    alone.answer(10, heartbeat_answer(is_caught_up=True))
    alone.step(10, RecoveryFinished())
    alone.step(10, ImageAdvanced(own_image()))
    assert alone.answer(20, heartbeat_answer(is_fenced=False)) == (BecameRunning(),)
    assert not alone.lifecycle.is_fenced
    assert len(alone.step(2020, TimerElapsed())) == 1
    return alone


@pytest.mark.parametrize("fenced", [True, False])
def test_the_last_heartbeat_counts_whatever_the_image_says(fenced: bool) -> None:
    alone = running()
    alone.answer(2025, heartbeat_answer(is_fenced=fenced))
    assert alone.lifecycle.is_fenced == fenced
    assert alone.lifecycle.state is BrokerState.RUNNING
    # A refused heartbeat says nothing either way.
    alone.step(4025, TimerElapsed())
    alone.answer(4030, heartbeat_answer(ApiError.STALE_BROKER_EPOCH))
    assert alone.lifecycle.is_fenced == fenced


@pytest.mark.parametrize(
    "image",
    [own_image(fenced=True), own_image(epoch=4), own_image(epoch=6), MetadataImage()],
    ids=["fenced", "of an earlier process", "of a later process", "unknown"],
)
def test_the_image_counts_whatever_the_last_heartbeat_said(image: MetadataImage) -> None:
    alone = running()
    alone.step(2025, ImageAdvanced(image))
    assert alone.lifecycle.is_fenced


def test_a_wish_to_go_follows_the_heartbeat_that_is_under_way() -> None:
    alone = running()
    assert alone.step(2021, ShutdownAsked()) == ()
    (sent,) = alone.answer(2025, heartbeat_answer(is_fenced=False))
    assert sent.request.want_shut_down


def test_a_wish_to_go_waits_its_time_where_the_heartbeat_under_way_fails() -> None:
    alone = running()
    alone.step(2021, ShutdownAsked())
    assert alone.answer(2025, heartbeat_answer(ApiError.UNKNOWN_SERVER_ERROR)) == ()
    assert alone.deadline_ms == 4025
    (sent,) = alone.step(4025, TimerElapsed())
    assert sent.request.want_shut_down
