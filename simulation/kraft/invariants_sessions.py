"""Invariants of the sessions that a controller gives brokers, and of how brokers return.

Heartbeats are known to the controller's present leadership alone, which begins with a new session
for each broker that is not fenced. Judged by the heartbeats that reached it and those that it has
answered, and by the records that it writes. Must never ask a controller, nor a broker.

Source: KIP-631 (sessions, fencing).
"""
# ruff: noqa: D102 - the moments are documented once, in Invariant

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from splitbrain.nodes.metadata.records import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from splitbrain.nodes.quorum.effects import AdvanceHighWatermark, AppendRecords
from splitbrain.nodes.quorum.events import RequestReceived
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.brokers import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from splitbrain.simulation.kraft.ghost import Ghost, Machine
from splitbrain.simulation.kraft.invariants import Arrival
from splitbrain.simulation.kraft.invariants_brokers import Answers

#: Of a session: clocks drift, and what was heard was heard before it was decided.
_SURELY_LIVES: Final = 9, 10
_SURELY_OVER: Final = 11, 10
#: A controller that works fences a silent broker before it has been awake for such a part of a
#: session; it counts as awake for a shorter part from each thing that it does.
_AWAKE_PARTS: Final = 4
_AWAKE_STEPS: Final = 20
#: Names of the setting, Kafka's and ours, and its default, milliseconds.
_SESSION: Final = "broker.session.timeout.ms", "broker_session_timeout_ms"
_SESSION_MS: Final = 9_000
#: ``fenced`` of a record that fences.
_FENCED: Final = 1


class Leadership(NamedTuple):
    """One leadership of one life: what its contacts know is lost with it."""

    node_id: int
    incarnation: int
    epoch: int


class _Heard(NamedTuple):
    """A heartbeat that was answered."""

    broker_epoch: int
    #: When it came, by the controller's clock, microseconds.
    time_us: int


class OneLeadership(Answers):
    """Knows when a leadership became active, and which heartbeats it has answered."""

    after_effects = (AppendRecords, AdvanceHighWatermark)

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        self.session_us = _session_us(ghost.world.scenario.settings)
        parts, of = _SURELY_LIVES
        #: A session lasts at least so long.
        self.least_us = self.session_us * parts // of
        #: When each became active, by the controller's clock, microseconds, and one past the last
        #: offset that was committed then.
        self.activated: dict[Leadership, Arrival] = {}
        #: By broker id.
        self._heard: dict[Leadership, dict[int, _Heard]] = {}

    def answered(self, machine: Machine, message: Any, answer: Any, arrival: Arrival) -> None:
        if isinstance(message, BrokerHeartbeatRequest) and answer.error_code == ApiError.NONE:
            leadership = self.leadership(machine)
            self.heartbeat(machine, leadership, message, answer, arrival)
            heard = self._heard.setdefault(leadership, {})
            heard[message.broker_id] = _Heard(message.broker_epoch, arrival.time_us)

    def after(self, machine: Machine, effect: Any) -> None:
        if isinstance(effect, AdvanceHighWatermark):
            self._note_activation(machine)
            return
        leadership = self.leadership(machine)
        last_offset = int(effect.base_offset) + len(effect.payloads) - 1
        for payload in effect.payloads:
            self.appended(machine, leadership, self.ledger.decode(payload), last_offset)

    def leadership(self, machine: Machine) -> Leadership:
        """That in which the machine works now."""
        host = machine.host
        return Leadership(int(host.node_id), host.incarnation, int(host.node.replica.epoch))

    def lives(self, leadership: Leadership, broker_id: int, epoch: int, now: int) -> bool:
        """Whether the session of this incarnation cannot be over."""
        heard = self._heard.get(leadership, {}).get(broker_id)
        return (
            heard is not None
            and heard.broker_epoch == epoch
            and now - heard.time_us <= self.least_us
        )

    def _note_activation(self, machine: Machine) -> None:
        """A leader is active once a record of its own epoch is committed, and all before it."""
        if machine.host.node.replica.role != "leader":
            return
        leadership = self.leadership(machine)
        if leadership in self.activated:
            return
        committed = self.ghost.committed
        if committed and committed[-1].epoch == leadership.epoch:
            self.activated[leadership] = Arrival(machine.host.clock.now(), len(committed))

    def heartbeat(
        self,
        machine: Machine,
        leadership: Leadership,
        message: BrokerHeartbeatRequest,
        answer: BrokerHeartbeatResponse,
        arrival: Arrival,
    ) -> None:
        """One was answered without an error."""

    def appended(
        self, machine: Machine, leadership: Leadership, record: Any, last_offset: int
    ) -> None:
        """Note that a leader wrote a record, in a batch that ends with ``last_offset``."""


class LiveBrokersStay(OneLeadership):
    """No process is registered in the place of another one whose session lasts."""

    id = "INV-55"

    def appended(
        self, machine: Machine, leadership: Leadership, record: Any, last_offset: int
    ) -> None:
        if not isinstance(record, RegisterBrokerRecord):
            return
        known = self.ledger.metadata.brokers.get(record.broker_id)
        if known is None or known.incarnation_id == record.incarnation_id:
            return
        now = machine.host.clock.now()
        if self.lives(leadership, record.broker_id, known.broker_epoch, now):
            raise self.violated(
                f"n{machine.host.node_id} registers broker {record.broker_id} anew, and the session"
                f" of the one with epoch {known.broker_epoch} lasts",
                machine,
            )


class SilentBrokersAreFenced(OneLeadership):
    """A broker that is silent for longer than a session is fenced if one controller stays active.

    Whoever becomes active gives each broker that is not fenced a new session.
    """

    id = "INV-62"
    events = (RequestReceived,)

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        parts, of = _SURELY_OVER
        self._longest_us = self.session_us * parts // of
        self._step_us = self.session_us // _AWAKE_STEPS
        self._looked_at: dict[Leadership, int] = {}
        #: When each incarnation's last sign of life came, by the controller's clock.
        self._signs: dict[tuple[Leadership, int, int], int] = {}
        #: Those that the leadership has fenced, or that are gone.
        self._fenced: dict[tuple[Leadership, int, int], None] = {}
        #: How long the controller was awake since a session was over, microseconds.
        self._awake_us: dict[tuple[Leadership, int, int], int] = {}

    def called(self, machine: Machine, message: Any) -> None:
        if isinstance(message, BrokerHeartbeatRequest):
            key = self.leadership(machine), message.broker_id, message.broker_epoch
            self._signs[key] = machine.host.clock.now()

    def appended(
        self, machine: Machine, leadership: Leadership, record: Any, last_offset: int
    ) -> None:
        match record:
            case BrokerRegistrationChangeRecord(fenced=fenced) if fenced:
                key = leadership, record.broker_id, record.broker_epoch
                if fenced == _FENCED:
                    self._fenced[key] = None
                else:
                    self._fenced.pop(key, None)
            case UnregisterBrokerRecord():
                self._fenced[leadership, record.broker_id, record.broker_epoch] = None
            case _:
                pass

    def took(self, machine: Machine, event: Any) -> None:
        host = machine.host
        if host.node.replica.role != "leader" or host.is_asked_to_end:
            return
        leadership = self.leadership(machine)
        active_since = self.activated.get(leadership)
        if active_since is None:
            return
        now = host.clock.now()
        step_us = now - self._looked_at.get(leadership, active_since.time_us)
        if step_us < self._step_us:
            return
        self._looked_at[leadership] = now
        for broker_id, broker in self.ledger.metadata.brokers.items():
            key = leadership, broker_id, broker.broker_epoch
            last_us = max(active_since.time_us, self._signs.get(key, 0))
            if broker.fenced or key in self._fenced or now - last_us <= self._longest_us:
                self._awake_us.pop(key, None)
                continue
            # A frozen controller is told of the time that it slept before it can act on it.
            awake_us = self._awake_us.get(key, 0) + min(step_us, self._step_us)
            self._awake_us[key] = awake_us
            if awake_us > self.session_us // _AWAKE_PARTS:
                raise self.violated(
                    f"n{host.node_id} has been active for {(now - active_since.time_us) // 1000}"
                    f" ms, has heard nothing of broker {broker_id} for"
                    f" {(now - last_us) // 1000} ms, and has not fenced it; a session is"
                    f" {self.session_us // 1000} ms",
                    machine,
                )


class CaughtUpBrokersServe(OneLeadership):
    """A fenced broker that has applied its registration and wants to serve is unfenced at once.

    Where its registration stands a leader knows of those that it wrote itself; of others it may
    ask for all that was committed when it became active.
    """

    id = "INV-63"

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        self._looked_at = 0
        #: By broker and broker epoch: offset of the last registration.
        self._registered: dict[tuple[int, int], int] = {}

    def heartbeat(
        self,
        machine: Machine,
        leadership: Leadership,
        message: BrokerHeartbeatRequest,
        answer: BrokerHeartbeatResponse,
        arrival: Arrival,
    ) -> None:
        self._note_registrations()
        asks = not message.want_fence and not message.want_shut_down
        active_since = self.activated.get(leadership)
        stands_at = self._registered.get((message.broker_id, message.broker_epoch))
        if not asks or not answer.is_fenced or answer.should_shut_down:
            return
        if active_since is None or stands_at is None:
            return
        needed = max(stands_at, active_since.applied - 1)
        if message.current_metadata_offset >= needed:
            raise self.violated(
                f"n{machine.host.node_id} leaves broker {message.broker_id} fenced, which wants to"
                f" serve and has applied what is at {message.current_metadata_offset}; its"
                f" registration is at {stands_at}",
                machine,
            )

    def _note_registrations(self) -> None:
        committed = self.ghost.committed
        for offset in range(self._looked_at, len(committed)):
            payload = committed[offset].payload
            record = None if payload is None else self.ledger.decode(payload)
            if isinstance(record, RegisterBrokerRecord):
                self._registered[record.broker_id, record.broker_epoch] = offset
        self._looked_at = len(committed)


class FencedForAReason(OneLeadership):
    """No broker is fenced whose session lasts, but at its own wish or on its way out."""

    id = "INV-64"

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        #: Heartbeats by which an incarnation asked a controller's life to be fenced, or to go.
        self._wishes: dict[tuple[int, int, int, int], int] = {}
        #: Brokers that a leadership lets go.
        self._leaving: dict[tuple[Leadership, int], None] = {}

    def called(self, machine: Machine, message: Any) -> None:
        self._count_wish(machine, message, 1)

    def answered(self, machine: Machine, message: Any, answer: Any, arrival: Arrival) -> None:
        super().answered(machine, message, answer, arrival)
        self._count_wish(machine, message, -1)

    def appended(
        self, machine: Machine, leadership: Leadership, record: Any, last_offset: int
    ) -> None:
        if not isinstance(record, BrokerRegistrationChangeRecord):
            return
        broker_id, epoch = record.broker_id, record.broker_epoch
        if record.in_controlled_shutdown:
            self._leaving[leadership, broker_id] = None
        known = self.ledger.metadata.brokers.get(broker_id)
        if record.fenced != _FENCED or known is None or known.broker_epoch != epoch:
            return
        host = machine.host
        is_asked = self._wishes.get((int(host.node_id), host.incarnation, broker_id, epoch), 0) > 0
        if is_asked or known.in_controlled_shutdown or (leadership, broker_id) in self._leaving:
            return
        now, active_since = host.clock.now(), self.activated.get(leadership)
        is_new = active_since is not None and now - active_since.time_us <= self.least_us
        if self.lives(leadership, broker_id, epoch, now) or (is_new and not known.fenced):
            raise self.violated(
                f"n{host.node_id} fences broker {broker_id}, which has not asked for it and whose"
                " session lasts",
                machine,
            )

    def _count_wish(self, machine: Machine, message: Any, by: int) -> None:
        if isinstance(message, BrokerHeartbeatRequest) and (
            message.want_fence or message.want_shut_down
        ):
            host = machine.host
            key = int(host.node_id), host.incarnation, message.broker_id, message.broker_epoch
            self._wishes[key] = self._wishes.get(key, 0) + by


def _session_us(settings: Mapping[str, str]) -> int:
    """Return the length of a session, microseconds."""
    given = [int(settings[name]) for name in _SESSION if name in settings]
    return 1_000 * (given[0] if given else _SESSION_MS)
