"""Brokers with controllers of ours: time, messages that take time or are lost, a log to follow."""

import heapq
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from splitbrain.nodes.broker.effects import (
    AbandonRequest,
    BecameRunning,
    Effect,
    FindController,
    MayStop,
    Recover,
    SendToController,
)
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
from splitbrain.nodes.broker.lifecycle import BrokerState, Lifecycle
from splitbrain.nodes.broker.settings import BrokerIdentity, BrokerSettings
from splitbrain.nodes.controller.basis.contacts import Contacts
from splitbrain.nodes.controller.brokers.fencing import fence_stale
from splitbrain.nodes.controller.roles.refusals import refuse
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.quorum.identifiers import Microseconds, NodeId
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.brokers import BrokerHeartbeatRequest
from tests.unit.nodes.controller.led_cluster import (
    CLUSTER_ID,
    SECOND,
    Cluster,
    directory,
    incarnation,
    listener,
)

MILLISECOND = 1000
CONTROLLERS = (NodeId(100), NodeId(101), NodeId(102))


class Process:
    """One life of a broker, and its host."""

    def __init__(self, world: "World", broker_id: int, life: int, **fields: Any) -> None:
        self.world = world
        self.broker_id = broker_id
        identity = BrokerIdentity(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=incarnation(1000 * broker_id + life),
            listeners=(listener(),),
            directories=(directory(broker_id),),
            **fields,
        )
        self.lifecycle = Lifecycle(identity, BrokerSettings())
        #: Nothing goes in or out, and no time passes for it.
        self.is_frozen = False
        #: Its messages get lost; it still follows the log.
        self.is_cut = False
        #: It does not follow the log.
        self.lags = False
        self.sent: list[SendToController] = []
        #: Numbers whose connection is closed.
        self.abandoned: set[int] = set()
        #: Effects that are not messages, and when.
        self.reported: list[tuple[int, Effect]] = []
        #: Its state by the last heartbeat that reached it.
        self.heard_fenced = True
        self._timer = -1

    @property
    def state(self) -> BrokerState:
        return self.lifecycle.state

    @property
    def stopped(self) -> MayStop | None:
        return next((each for _, each in self.reported if isinstance(each, MayStop)), None)

    def start(self, image: MetadataImage | None = None) -> None:
        self.step(Started(image or MetadataImage()))
        self.follow()

    def step(self, event: Event) -> None:
        if self.is_frozen:
            return
        if isinstance(event, AnswerReceived | RequestFailed) and event.number in self.abandoned:
            return
        if isinstance(event, AnswerReceived) and event.number == self.sent[-1].number:
            answer: Any = event.answer
            if isinstance(self.sent[-1].request, BrokerHeartbeatRequest) and not answer.error_code:
                self.heard_fenced = answer.is_fenced
        for effect in self.lifecycle.step(Microseconds(self.world.now), event):
            self._perform(effect)
        self.world.check(self)
        self._set_timer()

    def _perform(self, effect: Effect) -> None:
        match effect:
            case SendToController():
                assert all(each.number < effect.number for each in self.sent)
                self.sent.append(effect)
                self.world.send(self, effect)
            case FindController():
                if (leader := self.world.known_leader()) is not None:
                    self.world.after(1, lambda: self.step(ControllerKnown(leader)))
            case AbandonRequest(number):
                assert number == self.sent[-1].number
                self.abandoned.add(number)
            case Recover():
                self.reported.append((self.world.now, effect))
                self.world.after(1, lambda: self.step(RecoveryFinished()))
            case BecameRunning() | MayStop():
                self.reported.append((self.world.now, effect))

    def _set_timer(self) -> None:
        deadline = self.lifecycle.deadline
        if deadline is not None and deadline != self._timer:
            self._timer = deadline
            self.world.at(max(deadline, self.world.now), self._elapse)

    def _elapse(self) -> None:
        self._timer = -1
        if not self.is_frozen:
            self.step(TimerElapsed())

    def follow(self) -> None:
        """The log, every 20 ms."""
        if self.stopped is not None:
            return
        image = self.world.cluster.image
        if not self.lags and image is not self.lifecycle.image:
            self.step(ImageAdvanced(image))
        self.world.after(20, self.follow)

    def freeze(self) -> None:
        self.is_frozen = True

    def thaw(self) -> None:
        self.is_frozen = False
        self._timer = -1
        self.step(TimerElapsed())


class World:
    """Controllers of which one is active, brokers, and a network between them."""

    def __init__(self, seed: int = 0) -> None:
        self.cluster = Cluster()
        self.random = Random(seed)
        self.active: NodeId | None = CONTROLLERS[0]
        #: Share of messages that are lost, each way.
        self.loss = 0.0
        self.processes: list[Process] = []
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self.after(100, self._pass_time)

    @property
    def now(self) -> int:
        return self.cluster.now

    def at(self, time: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (time, next(self._order), action))

    def after(self, milliseconds: int, action: Callable[[], None]) -> None:
        self.at(self.now + milliseconds * MILLISECOND, action)

    def run(self, seconds: float) -> None:
        end = self.now + round(seconds * SECOND)
        while self._queue and self._queue[0][0] <= end:
            time, _, action = heapq.heappop(self._queue)
            self.cluster.now = max(self.now, time)
            action()
        self.cluster.now = end

    def start(self, broker_id: int, life: int = 1, **fields: Any) -> Process:
        process = Process(self, broker_id, life, **fields)
        self.processes.append(process)
        process.start()
        return process

    def stop(self, process: Process) -> None:
        process.step(ShutdownAsked())

    def elect(self, controller_id: NodeId | None) -> None:
        """Another controller leads, or none."""
        self.active = controller_id
        if controller_id is not None:
            now = Microseconds(self.now)
            self.cluster.contacts = Contacts.of_new_leader(self.cluster.image, now)

    def known_leader(self) -> NodeId | None:
        """As an observer knows it: not always the right one."""
        if self.loss and self.random.random() < self.loss / 2:
            return self.random.choice(CONTROLLERS)
        return self.active

    def send(self, process: Process, effect: SendToController) -> None:
        if process.is_cut or self._is_lost():
            self._fail(process, effect)
        else:
            self.after(2, lambda: self._receive(process, effect))

    def _receive(self, process: Process, effect: SendToController) -> None:
        if process.is_frozen and process.sent[-1] is effect:
            # It was still in the socket of a process that does not run.
            return
        request = effect.request
        is_heartbeat = isinstance(request, BrokerHeartbeatRequest)
        api_key = ApiKey.BROKER_HEARTBEAT if is_heartbeat else ApiKey.BROKER_REGISTRATION
        if effect.controller_id != self.active:
            answer: Any = refuse(api_key, request, 0, ApiError.NOT_CONTROLLER, None)
        else:
            answer = self.cluster.ask(api_key, request, 2 if is_heartbeat else 4)
        if self._is_lost():
            self._fail(process, effect)
            return
        delay = self.random.randrange(1, 2500) if self._is_lost() else 2
        self.after(delay, lambda: process.step(AnswerReceived(effect.number, answer)))

    def _fail(self, process: Process, effect: SendToController) -> None:
        """Half of what is lost nobody ever hears of again."""
        if self.random.random() < 0.5:
            self.after(3, lambda: process.step(RequestFailed(effect.number)))

    def _is_lost(self) -> bool:
        return self.random.random() < self.loss

    def _pass_time(self) -> None:
        if self.active is not None:
            while (decision := fence_stale(self.cluster.view)) is not None:
                self.cluster.act(decision)
        self.after(100, self._pass_time)

    def check(self, process: Process) -> None:
        """A broker believes what image and last heartbeat say, and never more."""
        lifecycle = process.lifecycle
        own = lifecycle.image.brokers.get(process.broker_id)
        image_fenced = own is None or own.fenced or own.broker_epoch != lifecycle.broker_epoch
        if image_fenced or process.heard_fenced:
            assert lifecycle.is_fenced
        else:
            serving = (BrokerState.RUNNING, BrokerState.PENDING_CONTROLLED_SHUTDOWN)
            assert lifecycle.is_fenced == (process.state not in serving)
