"""The active controller at work: one queue of events, one consumer.

The leader of the quorum is the active controller, from when everything of earlier epochs and its
own first record are applied until its role changes. An event may decide; its decision is appended
at once, and whoever asked is told once all of it, or for a no-op the records it read, is committed.

Source: KIP-631; a real controller's event queue.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from splitbrain.nodes.controller.basis.decisions import Decision
from splitbrain.nodes.controller.roles.active import ActiveController, Identity
from splitbrain.nodes.metadata.errors import ContradictionError
from splitbrain.nodes.metadata.machine import MetadataMachine
from splitbrain.nodes.metadata.records import MetadataRecord
from splitbrain.nodes.metadata.serde import encode_record
from splitbrain.nodes.quorum.effects import AcceptProposal
from splitbrain.nodes.quorum.events import ProposalId, RecordsProposed, ResignRequested
from splitbrain.nodes.quorum.identifiers import Epoch, Microseconds, Offset
from splitbrain.nodes.quorum.transitions import RoleName
from splitbrain.nodes.server.controller.controller_registrar import ControllerRegistrar
from splitbrain.nodes.server.host.layer import ServiceNeeds
from splitbrain.nodes.server.host.measurements import Measurements
from splitbrain.nodes.server.host.surroundings import TimerHandle, Timers
from splitbrain.nodes.wire.apis import ApiKey

#: Events of time that follow one another in one turn at most: requests wait meanwhile.
_DUE_PER_TURN_MAX: Final = 10

#: Outcome of a decision: all of it is committed; the leadership ended first, so that nobody
#: knows; or it contradicts what was appended, which no decision may.
Fate = Literal["committed", "lost", "wrong"]
#: Told once, maybe at once.
Done = Callable[[Fate], None]
Event = Callable[[], None]


class _Deferred(msgspec.Struct):
    """Decision that waits for the records up to an offset to be committed."""

    last_offset: Offset
    done: Done


class _Waiting(NamedTuple):
    event: Event
    #: When it came.
    since: Microseconds


class EventQueue:
    """Events that wait; each is handled in a turn of its own, in the order in which they came."""

    def __init__(
        self, timers: Timers, measurements: Measurements, handled: Callable[[], None]
    ) -> None:
        """An empty queue; ``handled`` is called after each event, in its turn."""
        self._timers = timers
        self._measurements = measurements
        self._handled = handled
        self._waiting: deque[_Waiting] = deque()
        self._is_turn_due = False

    def __len__(self) -> int:
        """How many events wait."""
        return len(self._waiting)

    def add(self, event: Event) -> None:
        """Handle it after all that wait already."""
        self._waiting.append(_Waiting(event, self._timers.now()))
        self._ask_for_turn()

    def take_all(self) -> tuple[Event, ...]:
        """Return the events that wait, oldest first; they wait no more."""
        waiting, self._waiting = self._waiting, deque()
        return tuple([each.event for each in waiting])

    def _ask_for_turn(self) -> None:
        if not self._is_turn_due:
            self._is_turn_due = True
            self._timers.call_soon(self._work)

    def _work(self) -> None:
        """One event, and a further turn while there are more."""
        self._is_turn_due = False
        if not self._waiting:
            return
        event, since = self._waiting.popleft()
        began = self._timers.now()
        event()
        self._measurements.event_handled(began - since, self._timers.now() - began)
        if self._waiting:
            self._ask_for_turn()
        self._handled()


class Leading:
    """Decides while its node leads; otherwise there is nobody active."""

    def __init__(
        self,
        needs: ServiceNeeds,
        machine: MetadataMachine,
        identity: Identity,
        registrar: ControllerRegistrar,
    ) -> None:
        """Nobody is active; ``registrar`` has the controller's own registration."""
        self._needs = needs
        self._machine = machine
        self._identity = identity
        self._registrar = registrar
        self._timers = needs.surroundings.timers
        #: The controller of the present leadership; None while this node is not active.
        self.active: ActiveController | None = None
        #: Of the present leadership, or of the last one.
        self.epoch = Epoch(-1)
        self._queue = EventQueue(self._timers, needs.surroundings.measurements, self._arm)
        self._timer: TimerHandle | None = None
        #: Oldest first.
        self._deferred: deque[_Deferred] = deque()
        self._proposal_count = 0
        self._accepted: AcceptProposal | None = None
        self._stopping = False

    @property
    def waiting_count(self) -> int:
        """How many events wait."""
        return len(self._queue)

    def submit(self, event: Event) -> None:
        """Let an event happen after all that wait; with nobody active it has to refuse."""
        self._queue.add(event)

    def decide(self, api_key: ApiKey, message: msgspec.Struct, version: int) -> Decision:
        """Decide a request; some controller has to be active."""
        active = self.active
        assert active is not None
        return active.decide(
            api_key,
            message,
            version,
            now=self._timers.now(),
            next_offset=self._needs.replica.log_end_offset,
        )

    def carry_out(self, decision: Decision, what: ApiKey, done: Done) -> None:
        """Append what was decided just now, and tell once it is known what became of it."""
        try:
            self._append(decision.records, done)
        except ContradictionError as error:
            # A defect of a decision: nothing of it was appended, and another may lead better.
            self._needs.surroundings.measurements.metadata_error()
            self._needs.surroundings.log_lines.write(
                "error", "wrong decision", api=what.name, reason=str(error)
            )
            done("wrong")
            self._needs.feed(ResignRequested())

    # Calls of the node.

    def accepted(self, effect: AcceptProposal) -> None:
        """Records are in the leader's log."""
        self._accepted = effect

    def advanced(self) -> None:
        """The image has everything that is committed: tell who waited for it, begin to lead."""
        while self._deferred and self._deferred[0].last_offset < self._machine.end_offset:
            self._deferred.popleft().done("committed")
        self._claim_if_due()

    def role_changed(self) -> None:
        """Note that the replica's role is another, or is held in another epoch."""
        replica = self._needs.replica
        leads = replica.role == RoleName.LEADER.value and replica.epoch == self.epoch
        if self.active is not None and not leads:
            self._renounce()

    def stop(self) -> None:
        """Lead no more; what waits is told."""
        self._stopping = True
        self._renounce()

    # Leading.

    def _claim_if_due(self) -> None:
        replica = self._needs.replica
        if self.active is not None or self._stopping or replica.role != RoleName.LEADER.value:
            return
        if self._needs.applied_epoch() != replica.epoch:
            return  # Records of earlier leaders are not committed yet.
        self.epoch = replica.epoch
        self.active = ActiveController(
            self._identity, self._machine.image, replica.epoch, self._timers.now()
        )
        self._queue.take_all()
        self._queue.add(self._activate)

    def _activate(self) -> None:
        """The first event of a leadership: its own records, and then its own registration."""
        active = self.active
        if active is None:
            return
        settings = self._identity.settings
        records = active.activation(self._machine.transaction_opened_at)
        self._append(records, self._activated, settings.activation_records_per_batch_max)
        if self.active is active and not self._registrar.is_registered:
            decision = self.decide(ApiKey.CONTROLLER_REGISTRATION, self._registrar.request, 0)
            self._append(decision.records, _nobody_waits)

    def _activated(self, fate: Fate) -> None:
        if fate == "committed":
            self._needs.surroundings.log_lines.write("info", "controller active", epoch=self.epoch)

    def _renounce(self) -> None:
        """Lead no more: nobody can know what becomes of what is not committed."""
        was_active = self.active is not None
        self.active = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deferred, self._deferred = self._deferred, deque()
        queue = self._queue.take_all()
        for waiting in deferred:
            waiting.done("lost")
        for event in queue:
            event()  # With nobody active each of them refuses, or does nothing.
        if was_active:
            self._needs.surroundings.log_lines.write(
                "info", "controller renounced", epoch=self.epoch
            )

    # Appends.

    def _append(
        self, records: Sequence[MetadataRecord], done: Done, longest: int | None = None
    ) -> None:
        """Append records in batches that may be so long; ``done`` once all are committed.

        ``longest``: records of a batch, where they are a transaction; None: what is usual. Raises
        ContradictionError: they cannot follow what was appended; nothing of the batch was.
        """
        longest = longest or self._identity.settings.records_per_batch_max
        for start in range(0, len(records), longest):
            if not self._propose(records[start : start + longest]):
                done("lost")
                return
        last_offset = Offset(self._needs.replica.log_end_offset - 1)
        if last_offset < self._machine.end_offset:
            done("committed")
        else:
            self._deferred.append(_Deferred(last_offset, done))

    def _propose(self, records: Sequence[MetadataRecord]) -> bool:
        """Append one batch; False if this node does not lead any more."""
        active = self.active
        if active is None:
            return False
        next_offset = self._needs.replica.log_end_offset
        prepared = active.prepare(records, next_offset)
        self._proposal_count += 1
        self._accepted = None
        payloads = tuple([encode_record(record) for record in records])
        self._needs.feed(RecordsProposed(ProposalId(self._proposal_count), payloads))
        if self._accepted is None or self.active is not active:
            return False
        assert self._accepted.base_offset == next_offset
        active.appended(prepared)
        return True

    # Time.

    def _arm(self) -> None:
        active = self.active
        deadline = None if active is None else active.deadline
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if deadline is not None:
            delay_us = max(deadline - self._timers.now(), 0)
            self._timer = self._timers.call_later(delay_us, self._elapse)

    def _elapse(self) -> None:
        self._timer = None
        self._queue.add(self._do_what_is_due)

    def _do_what_is_due(self) -> None:
        for _ in range(_DUE_PER_TURN_MAX):
            active = self.active
            if active is None:
                return
            decision = active.due(self._timers.now(), self._needs.replica.log_end_offset)
            if decision is None:
                return
            self._append(decision.records, _nobody_waits)
        self._queue.add(self._do_what_is_due)


def _nobody_waits(_: Fate) -> None:
    """Nobody asked."""
