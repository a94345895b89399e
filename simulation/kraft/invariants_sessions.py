"""Invariants of the sessions that a controller gives brokers, and of how brokers leave.

Heartbeats are known to the controller's present leadership alone. Judged by the heartbeats that it
has answered and by the records that it writes. Must never ask a controller, nor a broker.
"""
# ruff: noqa: D102 - the moments are documented once, in Invariant

from typing import Any, Final, NamedTuple

from splitbrain.nodes.metadata.records import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from splitbrain.nodes.quorum.effects import AppendRecords
from splitbrain.nodes.server.start.metadata_settings import controller_settings
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.brokers import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from splitbrain.simulation.kraft.ghost import Ghost, Machine
from splitbrain.simulation.kraft.invariants import Arrival
from splitbrain.simulation.kraft.invariants_brokers import Answers

#: Of a session: clocks drift, and what was heard was heard before it was decided.
_SURELY_LIVES: Final = 9, 10


class _Leadership(NamedTuple):
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
    """Knows which heartbeats a leadership has answered, and when they came."""

    after_effects = (AppendRecords,)

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        settings = controller_settings(ghost.world.scenario.settings)
        parts, of = _SURELY_LIVES
        self._session_us = settings.broker_session_timeout * parts // of
        #: By broker id.
        self._heard: dict[_Leadership, dict[int, _Heard]] = {}

    def answered(self, machine: Machine, message: Any, answer: Any, arrival: Arrival) -> None:
        if isinstance(message, BrokerHeartbeatRequest) and answer.error_code == ApiError.NONE:
            leadership = self.leadership(machine)
            self.heartbeat(machine, leadership, message, answer, arrival)
            heard = self._heard.setdefault(leadership, {})
            heard[message.broker_id] = _Heard(message.broker_epoch, arrival.time_us)

    def after(self, machine: Machine, effect: AppendRecords) -> None:
        leadership = self.leadership(machine)
        last_offset = int(effect.base_offset) + len(effect.payloads) - 1
        for payload in effect.payloads:
            self.appended(machine, leadership, self.ledger.decode(payload), last_offset)

    def leadership(self, machine: Machine) -> _Leadership:
        """That in which the machine works now."""
        host = machine.host
        return _Leadership(int(host.node_id), host.incarnation, int(host.node.replica.epoch))

    def lives(self, leadership: _Leadership, broker_id: int, epoch: int, now: int) -> bool:
        """Whether the session of this incarnation cannot be over."""
        heard = self._heard.get(leadership, {}).get(broker_id)
        return (
            heard is not None
            and heard.broker_epoch == epoch
            and now - heard.time_us <= self._session_us
        )

    def heartbeat(
        self,
        machine: Machine,
        leadership: _Leadership,
        message: BrokerHeartbeatRequest,
        answer: BrokerHeartbeatResponse,
        arrival: Arrival,
    ) -> None:
        """One was answered without an error."""

    def appended(
        self, machine: Machine, leadership: _Leadership, record: Any, last_offset: int
    ) -> None:
        """Note that a leader wrote a record, in a batch that ends with ``last_offset``."""


class LeaversAreMissed(OneLeadership):
    """A broker that handed over may go once all that serve said that they know who leads now."""

    id = "INV-54"

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        #: Offset that the others must have applied before a broker may go.
        self._begun: dict[tuple[_Leadership, int], int] = {}
        #: By life of a controller and broker: the highest offset that the broker said it has.
        self._said: dict[tuple[int, int, int], int] = {}

    def called(self, machine: Machine, message: Any) -> None:
        if isinstance(message, BrokerHeartbeatRequest):
            key = int(machine.host.node_id), machine.host.incarnation, message.broker_id
            said = self._said.get(key, -1)
            self._said[key] = max(said, message.current_metadata_offset)

    def appended(
        self, machine: Machine, leadership: _Leadership, record: Any, last_offset: int
    ) -> None:
        if isinstance(record, BrokerRegistrationChangeRecord) and record.in_controlled_shutdown:
            self._begun[leadership, record.broker_id] = last_offset

    def heartbeat(
        self,
        machine: Machine,
        leadership: _Leadership,
        message: BrokerHeartbeatRequest,
        answer: BrokerHeartbeatResponse,
        arrival: Arrival,
    ) -> None:
        broker_id, epoch = message.broker_id, message.broker_epoch
        awaited = self._begun.get((leadership, broker_id))
        # A session that may have ended meanwhile fences the broker, and then it need not wait.
        lives = self.lives(leadership, broker_id, epoch, machine.host.clock.now())
        if not answer.should_shut_down or awaited is None or not lives:
            return
        images = list(self.images(arrival))
        leaving = images[0].brokers.get(broker_id)
        if leaving is None or leaving.fenced or not leaving.in_controlled_shutdown:
            return
        for other_id, other in images[0].brokers.items():
            serves = not other.fenced and not other.in_controlled_shutdown
            stays = all(image.brokers.get(other_id) is other for image in images)
            said = self._said.get((leadership.node_id, leadership.incarnation, other_id), -1)
            if other_id != broker_id and serves and stays and said < awaited:
                raise self.violated(
                    f"n{machine.host.node_id} lets broker {broker_id} go before broker {other_id}"
                    f" has said that it knows what was at {awaited}",
                    machine,
                )


class LiveBrokersStay(OneLeadership):
    """No process is registered in the place of another one whose session lasts."""

    id = "INV-55"

    def appended(
        self, machine: Machine, leadership: _Leadership, record: Any, last_offset: int
    ) -> None:
        if not isinstance(record, RegisterBrokerRecord):
            return
        known = self.ledger.image.brokers.get(record.broker_id)
        if known is None or known.incarnation_id == record.incarnation_id:
            return
        now = machine.host.clock.now()
        if self.lives(leadership, record.broker_id, known.broker_epoch, now):
            raise self.violated(
                f"n{machine.host.node_id} registers broker {record.broker_id} anew, and the session"
                f" of the one with epoch {known.broker_epoch} lasts",
                machine,
            )
