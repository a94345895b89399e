"""Invariants of brokers that leave in order: not too early, and not later than they may.

A broker that is asked to end first hands over what it leads. It goes once all others that serve
have said that they know who leads now, so that no client is sent to it any more. How far they are
is known to the controller's present leadership alone. Must never ask a controller, nor a broker.

Source: KIP-841 (controlled shutdown), KIP-631 (heartbeats).
"""
# ruff: noqa: D102 - the moments are documented once, in Invariant

from typing import Any, NamedTuple

from splitbrain.nodes.metadata.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from splitbrain.nodes.wire.families.brokers import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from splitbrain.simulation.kraft.ghost import Ghost, Machine
from splitbrain.simulation.kraft.invariants import Arrival
from splitbrain.simulation.kraft.invariants_sessions import Leadership, OneLeadership
from splitbrain.simulation.kraft.metadata.state import Metadata


class _Said(NamedTuple):
    """A heartbeat that reached a controller."""

    #: By the controller's clock, microseconds.
    time_us: int
    #: Highest offset that the broker had applied.
    offset: int
    #: Whether the controller took it, as its answer shows.
    is_taken: bool


class LeaversAreMissed(OneLeadership):
    """A broker that handed over may go once all that serve said that they know who leads now."""

    id = "INV-54"

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        #: Offset that the others must have applied before a broker may go.
        self._begun: dict[tuple[Leadership, int], int] = {}
        #: By life of a controller and broker: the highest offset that the broker said it has.
        self._said: dict[tuple[int, int, int], int] = {}

    def called(self, machine: Machine, message: Any) -> None:
        if isinstance(message, BrokerHeartbeatRequest):
            key = int(machine.host.node_id), machine.host.incarnation, message.broker_id
            said = self._said.get(key, -1)
            self._said[key] = max(said, message.current_metadata_offset)

    def appended(
        self, machine: Machine, leadership: Leadership, record: Any, last_offset: int
    ) -> None:
        if isinstance(record, BrokerRegistrationChangeRecord) and record.in_controlled_shutdown:
            self._begun[leadership, record.broker_id] = last_offset

    def heartbeat(
        self,
        machine: Machine,
        leadership: Leadership,
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
        seen = list(self.metadata(arrival))
        leaving = seen[0].brokers.get(broker_id)
        if leaving is None or leaving.fenced or not leaving.in_controlled_shutdown:
            return
        for other_id, other in seen[0].brokers.items():
            serves = not other.fenced and not other.in_controlled_shutdown
            stays = all(metadata.brokers.get(other_id) is other for metadata in seen)
            said = self._said.get((leadership.node_id, leadership.incarnation, other_id), -1)
            if other_id != broker_id and serves and stays and said < awaited:
                raise self.violated(
                    f"n{machine.host.node_id} lets broker {broker_id} go before broker {other_id}"
                    f" has said that it knows what was at {awaited}",
                    machine,
                )


class LeaversMayGo(OneLeadership):
    """A broker that wants to go and leads nothing is let go once all that serve know that.

    The controller takes heartbeats in the order in which they come. So the last ones of the others
    before the leaver's own are enough if they cover the last change of a partition: the hand-over
    was not after that.
    """

    id = "INV-65"

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        #: Heartbeats of each broker, oldest first: the last that was taken, and those since then.
        self._said: dict[tuple[Leadership, int], list[_Said]] = {}
        #: When a record about a broker itself was written last, by the controller's clock: from
        #: then on the broker has to say anew how far it is.
        self._changed_us: dict[tuple[Leadership, int], int] = {}
        #: Offset behind all changes of partitions, and those of a leaver's own state.
        self._handed_over: dict[tuple[Leadership, int | None], int] = {}

    def called(self, machine: Machine, message: Any) -> None:
        if isinstance(message, BrokerHeartbeatRequest):
            now, offset = machine.host.clock.now(), message.current_metadata_offset
            key = self.leadership(machine), message.broker_id
            self._said.setdefault(key, []).append(_Said(now, offset, is_taken=False))

    def appended(
        self, machine: Machine, leadership: Leadership, record: Any, last_offset: int
    ) -> None:
        match record:
            case PartitionChangeRecord():
                self._handed_over[leadership, None] = last_offset
            case (
                BrokerRegistrationChangeRecord(broker_id=broker_id)
                | RegisterBrokerRecord(broker_id=broker_id)
                | UnregisterBrokerRecord(broker_id=broker_id)
            ):
                self._handed_over[leadership, broker_id] = last_offset
                self._changed_us[leadership, broker_id] = machine.host.clock.now()
            case _:
                pass

    def heartbeat(
        self,
        machine: Machine,
        leadership: Leadership,
        message: BrokerHeartbeatRequest,
        answer: BrokerHeartbeatResponse,
        arrival: Arrival,
    ) -> None:
        self._note_taken(leadership, message, arrival)
        if not message.want_shut_down or answer.should_shut_down:
            return
        seen = list(self.metadata(arrival))
        broker_id = message.broker_id
        if not all(_leads_nothing(metadata, message) for metadata in seen):
            return
        awaited = max(self._handed_over.get((leadership, who), -1) for who in (None, broker_id))
        others = {
            other_id
            for metadata in seen
            for other_id, other in metadata.brokers.items()
            if other_id != broker_id and not other.fenced
        }
        if all(self._knows(leadership, other_id, awaited, arrival) for other_id in others):
            raise self.violated(
                f"n{machine.host.node_id} does not let broker {broker_id} go, which wants to and"
                f" leads nothing; all others that serve have said that they know what was at"
                f" {awaited}",
                machine,
            )

    def _note_taken(
        self, leadership: Leadership, message: BrokerHeartbeatRequest, arrival: Arrival
    ) -> None:
        key = leadership, message.broker_id
        taken = _Said(arrival.time_us, message.current_metadata_offset, is_taken=True)
        later = [said for said in self._said.get(key, ()) if said.time_us >= taken.time_us]
        same = next((at for at, said in enumerate(later) if said[:2] == taken[:2]), None)
        if same is not None:
            later[same] = taken
        self._said[key] = later

    def _knows(
        self, leadership: Leadership, broker_id: int, awaited: int, arrival: Arrival
    ) -> bool:
        """Whether the controller must have known that a broker has applied ``awaited``."""
        heard = self._said.get((leadership, broker_id), [])
        before = [said for said in heard if said.time_us <= arrival.time_us]
        if not before or before[0].time_us == arrival.time_us:
            return False
        newest_us = max(said.time_us for said in before if said.time_us < arrival.time_us)
        counted = [said for said in before if said.time_us >= newest_us]
        is_anew = newest_us > self._changed_us.get((leadership, broker_id), -1)
        return is_anew and all(said.is_taken and said.offset >= awaited for said in counted)


def _leads_nothing(metadata: Metadata, leaver: BrokerHeartbeatRequest) -> bool:
    """Whether the broker is the registered one, and leads no partition."""
    broker = metadata.brokers.get(leaver.broker_id)
    leaders = (partition.leader for partition in metadata.all_partitions())
    return (
        broker is not None
        and broker.broker_epoch == leaver.broker_epoch
        and leaver.broker_id not in leaders
    )
