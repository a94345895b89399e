"""A broker's life with the controller: registers, catches up, is unfenced, serves, leaves.

``Lifecycle.step(now, event)`` is the one mutator; ``Lifecycle.deadline`` says when time matters
next. States follow Kafka's: STARTING until the controller says that the broker has applied its own
registration, RECOVERY until it is unfenced, RUNNING, PENDING_CONTROLLED_SHUTDOWN until nothing is
led any more, SHUTTING_DOWN. As in Kafka:

- a registration or a heartbeat is tried for one heartbeat interval, with whatever controllers are
  found in it; a refusal, DUPLICATE_BROKER_REGISTRATION among them, is tried again one interval
  later, until the initial registration timeout is over;
- a heartbeat refused with STALE_BROKER_EPOCH or BROKER_ID_NOT_REGISTERED is only sent again: a
  broker that was unregistered, or displaced by another process, stays fenced until it is restarted;
- being fenced later changes no state: the next heartbeat, which wants no fence, ends it.

``is_fenced`` is ours; a real broker does not have it. It is true unless the broker is
running, its own image has its registration, with its epoch and not fenced, and the last heartbeat
was answered so. Must never be false while any of the three says otherwise. It may be
false of a broker that its controller has fenced, for as long as the broker has not heard of it.

Source: KIP-631, KIP-841; Kafka 4.3.1's BrokerLifecycleManager.
"""

from enum import Enum
from typing import Final

from splitbrain.nodes.broker.controller_channel import Answer, ControllerChannel
from splitbrain.nodes.broker.effects import BecameRunning, Effect, MayStop, Recover
from splitbrain.nodes.broker.events import (
    AnswerReceived,
    ControllerKnown,
    Event,
    ImageAdvanced,
    RecoveryFinished,
    RequestFailed,
    ShutdownAsked,
    Started,
    TimerElapsed,
)
from splitbrain.nodes.broker.settings import BrokerIdentity, BrokerSettings, supported_features
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.quorum.identifiers import Microseconds
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.brokers import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

#: First level of ``metadata.version`` at which heartbeats say which directories are cordoned.
_CORDONED_SINCE: Final = 30
#: After a heartbeat that brought the broker on: nothing to recover shall not cost an interval.
_SOON_AFTER_START: Final = Microseconds(10_000)
#: After the first answer to a broker that wants to go.
_SOON_AFTER_SHUTDOWN: Final = Microseconds(50_000)
_AT_ONCE: Final = Microseconds(0)
_UNREGISTERED: Final = -1


class BrokerState(Enum):
    """Where a broker is in its life; values are Kafka's."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


_SERVING: Final = (BrokerState.RUNNING, BrokerState.PENDING_CONTROLLED_SHUTDOWN)


class Lifecycle:
    """One process's life as a broker."""

    def __init__(self, identity: BrokerIdentity, settings: BrokerSettings) -> None:
        self._identity = identity
        self._settings = settings
        self._channel = ControllerChannel(settings)
        #: Where the broker is in its life.
        self.state = BrokerState.NOT_RUNNING
        #: The newest that it was given.
        self.image = MetadataImage()
        #: Epoch that the controller gave; -1 before.
        self.broker_epoch = _UNREGISTERED
        self._ready_to_unfence = False
        self._heard_unfenced = False
        self._heard_of_shutdown = False
        self._register_until: Microseconds | None = None
        self._next_at: Microseconds | None = None
        #: The next request was due while one was under way.
        self._hurried = False
        self._effects: list[Effect] = []

    @property
    def is_fenced(self) -> bool:
        """Whether the broker has to believe that it is fenced; see the module's docstring."""
        if self.state not in _SERVING or not self._heard_unfenced:
            return True
        own = self.image.brokers.get(self._identity.broker_id)
        return own is None or own.broker_epoch != self.broker_epoch or own.fenced

    @property
    def deadline(self) -> Microseconds | None:
        """When the next TimerElapsed is wanted; read it after every step."""
        times = (self._register_until, self._next_at, self._channel.deadline)
        return min((time for time in times if time is not None), default=None)

    def step(self, now: Microseconds, event: Event) -> tuple[Effect, ...]:
        """Handles one event and returns what is to be done, in order; ``now`` never goes back."""
        if self.state is not BrokerState.SHUTTING_DOWN:
            self._handle(now, event)
        effects, self._effects = tuple(self._effects), []
        return effects

    def _handle(self, now: Microseconds, event: Event) -> None:
        match event:
            case Started(image):
                self._start(now, image)
            case TimerElapsed():
                self._elapse(now)
            case ImageAdvanced(image):
                self.image = image
            case ControllerKnown(controller_id):
                self._effects += self._channel.controller_known(controller_id)
            case AnswerReceived(number, received):
                answer, effects = self._channel.answered(now, number, received)
                self._effects += effects
                if answer is not None:
                    self._take(now, answer)
            case RequestFailed(number):
                self._effects += self._channel.failed(now, number)
            case RecoveryFinished():
                self._ready_to_unfence = True
                self._communicate_after(now, _AT_ONCE)
            case ShutdownAsked(controlled):
                self._leave(now, controlled=controlled)

    def _start(self, now: Microseconds, image: MetadataImage) -> None:
        self.state = BrokerState.STARTING
        self.image = image
        timeout = self._settings.initial_registration_timeout
        self._register_until = Microseconds(now + timeout)
        self._communicate(now)

    def _elapse(self, now: Microseconds) -> None:
        if self._register_until is not None and now >= self._register_until:
            self._stop("no controller has registered the broker in time", clean=False)
            return
        is_over, effects = self._channel.elapsed(now)
        self._effects += effects
        if is_over:
            self._communicate_after_failure(now)
        if self._next_at is not None and now >= self._next_at:
            self._communicate(now)

    def _leave(self, now: Microseconds, *, controlled: bool) -> None:
        if controlled and self.state is BrokerState.RUNNING:
            self.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
            self._communicate_after(now, _AT_ONCE)
        elif not controlled or self.state is not BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            self._stop("the broker was asked to stop", clean=True)

    def _stop(self, reason: str, *, clean: bool) -> None:
        self.state = BrokerState.SHUTTING_DOWN
        self._channel.close()
        self._register_until = self._next_at = None
        self._effects.append(MayStop(reason, clean, self.broker_epoch))

    # --- what is sent ---

    def _communicate(self, now: Microseconds) -> None:
        self._next_at = None
        if self._channel.is_busy:
            self._hurried = True
            return
        is_registered = self.broker_epoch != _UNREGISTERED
        request = self._heartbeat() if is_registered else self._registration()
        self._effects += self._channel.submit(now, request)

    def _communicate_after(self, now: Microseconds, pause: Microseconds) -> None:
        if self._hurried:
            pause = _AT_ONCE
        self._hurried = False
        self._next_at = Microseconds(now + pause)
        if pause == _AT_ONCE:
            self._communicate(now)

    def _communicate_after_failure(self, now: Microseconds) -> None:
        # A failed request is never hurried.
        self._hurried = False
        self._communicate_after(now, self._settings.heartbeat_interval)

    def _registration(self) -> BrokerRegistrationRequest:
        identity = self._identity
        return BrokerRegistrationRequest(
            broker_id=identity.broker_id,
            cluster_id=identity.cluster_id,
            incarnation_id=identity.incarnation_id,
            listeners=identity.listeners,
            features=supported_features(identity.features),
            rack=identity.rack,
            log_dirs=tuple(sorted(identity.directories)),
            previous_broker_epoch=identity.previous_broker_epoch,
        )

    def _heartbeat(self) -> BrokerHeartbeatRequest:
        level = self.image.metadata_version
        says_cordoned = self.state is not BrokerState.STARTING and (level or 0) >= _CORDONED_SINCE
        return BrokerHeartbeatRequest(
            broker_id=self._identity.broker_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self.image.provenance.last_offset,
            want_fence=not self._ready_to_unfence,
            want_shut_down=self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN,
            cordoned_log_dirs=self._identity.cordoned_directories if says_cordoned else None,
        )

    # --- what is answered ---

    def _take(self, now: Microseconds, answer: Answer) -> None:
        if answer.error_code != ApiError.NONE:
            self._communicate_after_failure(now)
        elif isinstance(answer, BrokerRegistrationResponse):
            self.broker_epoch = answer.broker_epoch
            self._register_until = None
            self._communicate_after(now, _AT_ONCE)
        else:
            self._heard_unfenced = not answer.is_fenced
            self._live_on(now, answer)

    def _live_on(self, now: Microseconds, answer: BrokerHeartbeatResponse) -> None:
        pause = self._settings.heartbeat_interval
        match self.state:
            case BrokerState.STARTING:
                if answer.is_caught_up:
                    self.state = BrokerState.RECOVERY
                    self._effects.append(Recover())
                pause = _SOON_AFTER_START
            case BrokerState.RECOVERY:
                if not answer.is_fenced:
                    self.state = BrokerState.RUNNING
                    self._effects.append(BecameRunning())
            case BrokerState.PENDING_CONTROLLED_SHUTDOWN:
                if answer.should_shut_down:
                    self._stop("the controller lets the broker go", clean=True)
                    return
                if not self._heard_of_shutdown:
                    pause = _SOON_AFTER_SHUTDOWN
                self._heard_of_shutdown = True
            case _:
                pass
        self._communicate_after(now, pause)
