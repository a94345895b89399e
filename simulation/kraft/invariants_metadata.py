"""Invariants of Kafka's committed metadata, and of answers to clients about topics.

Looked at batch by batch: a decision of a controller is one batch, and nobody is shown a part of it.
In worlds of registers there is nothing to look at. Must never ask a controller, nor a broker.
"""
# ruff: noqa: D102 - the moments are documented once, in Invariant

from itertools import pairwise
from typing import Any

from splitbrain.nodes.metadata.records import (
    NO_LEADER,
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    EndTransactionRecord,
    MetadataRecord,
    RegisterBrokerRecord,
)
from splitbrain.nodes.quorum.effects import AdvanceHighWatermark, AppendRecords, ReplaceLog
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest
from splitbrain.simulation.kraft.ghost import Ghost, Machine
from splitbrain.simulation.kraft.invariants import MetadataInvariant
from splitbrain.simulation.kraft.metadata.ledger import Batch
from splitbrain.simulation.kraft.metadata.state import Metadata

#: ``fenced`` of a record that unfences.
_UNFENCED = -1
_CHANGES = ("create-topic", "delete-topic")


class CommittedBatches(MetadataInvariant):
    """Looks at every batch of metadata once it is committed."""

    after_effects = (AdvanceHighWatermark,)

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        self._looked_at = 0

    def after(self, machine: Machine, effect: Any) -> None:
        first = self._looked_at
        end = self._looked_at = len(self.ghost.committed)
        # The committing node is a leader, and the records lie in its log.
        if end == first or machine.log is None:
            return
        bounds = [first, *machine.log.batch_ends(first, end)]
        for base_offset, batch_end in pairwise(bounds):
            entries = self.ghost.committed[base_offset:batch_end]
            batch = self.ledger.batch(entries, base_offset)
            if batch.records:
                self.look(machine, batch)

    def look(self, machine: Machine, batch: Batch) -> None:
        """Note that a batch is committed, and all before it."""


class RecordsMakeMetadata(CommittedBatches):
    """Committed records can be applied: none contradicts those before it."""

    id = "INV-43"

    def after(self, machine: Machine, effect: Any) -> None:
        problem = self.ledger.problem
        if problem is not None:
            raise self.violated(f"the committed metadata contradicts itself: {problem}")


class TransactionsEndWithTheirLeader(MetadataInvariant):
    """The first record that a leader writes aborts the transaction that an earlier one left open.

    And the first of all opens one: what the cluster can have is said before anything else is. That
    a leader goes on in another one's transaction is seen as soon as it writes: nobody can apply it.
    """

    id = "INV-44"
    after_effects = (AdvanceHighWatermark, AppendRecords)

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        self._looked_at = 0
        #: Epoch of the open transaction; None while none is open.
        self._open_since: int | None = None
        #: The last epoch whose leader wrote that it aborts one.
        self._aborted_in = -1

    def after(self, machine: Machine, effect: AdvanceHighWatermark | AppendRecords) -> None:
        if isinstance(effect, AppendRecords):
            self._check_written(machine, effect)
        else:
            self._check_committed(machine)

    def _check_written(self, machine: Machine, effect: AppendRecords) -> None:
        # A deposed leader knows nothing of a later one's transaction, nor need it.
        if self._open_since is None or effect.epoch <= max(self._open_since, self._aborted_in):
            return
        first = self.ledger.decode(effect.payloads[0])
        if not isinstance(first, AbortTransactionRecord):
            raise self.violated(
                f"the leader of epoch {effect.epoch} begins with a {type(first).__name__} at"
                f" {effect.base_offset}, in the transaction that the leader of epoch"
                f" {self._open_since} left open",
                machine,
            )
        self._aborted_in = int(effect.epoch)

    def _check_committed(self, machine: Machine) -> None:
        ledger, committed = self.ledger, self.ghost.committed
        for offset in range(self._looked_at, len(committed)):
            entry = committed[offset]
            if entry.payload is not None:
                record = ledger.decode(entry.payload)
                self._check(machine, offset, entry.epoch, record, ledger.at(offset))
        self._looked_at = len(committed)

    def _check(
        self,
        machine: Machine,
        offset: int,
        epoch: int,
        record: MetadataRecord,
        before: Metadata,
    ) -> None:
        name = type(record).__name__
        is_abort = isinstance(record, AbortTransactionRecord)
        if self._open_since is not None and self._open_since != epoch and not is_abort:
            raise self.violated(
                f"in epoch {epoch} a {name} is committed at {offset} in the transaction that the"
                f" leader of epoch {self._open_since} left open",
                machine,
            )
        is_begin = isinstance(record, BeginTransactionRecord)
        if before.metadata_version is None and self._open_since is None and not is_begin:
            raise self.violated(
                f"a {name} is committed at {offset}, before any record has said what the cluster"
                " can have",
                machine,
            )
        if is_begin:
            self._open_since = epoch
        elif is_abort or isinstance(record, EndTransactionRecord):
            self._open_since = None


class BrokerEpochsAreNew(CommittedBatches):
    """No broker epoch is shared by two incarnations, and that of a later one is higher."""

    id = "INV-45"

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        #: Broker epoch -> broker and incarnation.
        self._given: dict[int, tuple[int, str]] = {}

    def look(self, machine: Machine, batch: Batch) -> None:
        for record in batch.records:
            if not isinstance(record, RegisterBrokerRecord):
                continue
            mine = record.broker_id, record.incarnation_id
            if self._given.setdefault(record.broker_epoch, mine) != mine:
                raise self.violated(
                    f"two incarnations have the broker epoch {record.broker_epoch}, the later one"
                    f" of broker {record.broker_id}",
                    machine,
                )
            known = batch.before.brokers.get(record.broker_id)
            if (
                known is not None
                and known.incarnation_id != record.incarnation_id
                and known.broker_epoch >= record.broker_epoch
            ):
                raise self.violated(
                    f"broker {record.broker_id} is registered anew with epoch"
                    f" {record.broker_epoch}, and had {known.broker_epoch}",
                    machine,
                )


class FencedHoldNothing(CommittedBatches):
    """No fenced broker leads a partition, nor is in its ISR but as the last that ever was.

    So it is of no new partition's ISR either. Where all in sync are fenced, nobody leads.
    """

    id = "INV-46"

    def look(self, machine: Machine, batch: Batch) -> None:
        after = batch.after
        serving = [broker_id for broker_id, broker in after.brokers.items() if not broker.fenced]
        for state in after.affected_since(batch.before):
            gone = [broker for broker in state.isr if broker not in serving]
            if state.leader != NO_LEADER and (
                state.leader in gone or state.leader not in state.isr
            ):
                raise self.violated(
                    f"at {batch.base_offset} broker {state.leader} leads {after.name_of(state)},"
                    " and is fenced or not in sync",
                    machine,
                )
            if gone and (len(state.isr) > 1 or state.leader != NO_LEADER):
                raise self.violated(
                    f"at {batch.base_offset} broker {gone[0]} is in the ISR of"
                    f" {after.name_of(state)} with others, and is fenced",
                    machine,
                )


class UnfencedOnceCaughtUp(MetadataInvariant):
    """A broker is unfenced once its node has applied its own registration, and not before.

    Looked at when the controller writes it down: until that is committed the broker may catch up.
    """

    id = "INV-49"
    after_effects = (AdvanceHighWatermark, ReplaceLog, AppendRecords)

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        #: By node: one past the last offset that it ever had applied.
        self._applied: dict[int, int] = {}

    def started(self, machine: Machine) -> None:
        self._note(machine, machine.host.node.parts.applier.machine.end_offset)

    def after(self, machine: Machine, effect: Any) -> None:
        match effect:
            case AppendRecords():
                self._check(machine, effect)
            case ReplaceLog():
                self._note(machine, effect.snapshot_id.end_offset)
            case _:
                self._note(machine, effect.offset)

    def _check(self, machine: Machine, effect: AppendRecords) -> None:
        for record in map(self.ledger.decode, effect.payloads):
            if not isinstance(record, BrokerRegistrationChangeRecord) or record.fenced != _UNFENCED:
                continue
            applied = self._applied.get(record.broker_id, 0)
            if applied <= record.broker_epoch:
                raise self.violated(
                    f"n{machine.host.node_id} unfences broker {record.broker_id}, which has applied"
                    f" what is below {applied}, and its registration lies at {record.broker_epoch}",
                    machine,
                )

    def _note(self, machine: Machine, end_offset: int) -> None:
        node_id = int(machine.host.node_id)
        self._applied[node_id] = max(self._applied.get(node_id, 0), end_offset)


class OneAnswerPerRequest(MetadataInvariant):
    """A change of a topic is told to one client, once; one that was not made had no need.

    So no record is acknowledged twice. Where a topic is said to have been there, or not, it was at
    some time since the last that the client can have known.
    """

    id = "INV-47"

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        #: Offset of the record -> whose it is.
        self._answered: dict[int, str] = {}

    def replied(
        self, machine: Machine, request: ClientRequest, answer: ClientAnswer, floor: int
    ) -> None:
        if request.kind not in _CHANGES or answer.outcome != "ok":
            return
        if answer.offset is None:
            # There now, or found there; gone now, or found missing.
            is_there = request.kind == "create-topic"
            if not self.ledger.was(request.key, floor, present=is_there):
                raise self.violated(
                    f"n{machine.host.node_id} tells {request.operation} that the topic"
                    f" {request.key} is {'there' if is_there else 'not there'}, which it never was"
                    f" since offset {floor}",
                    machine,
                )
            return
        whose = self._answered.setdefault(answer.offset, request.operation)
        if whose != request.operation:
            raise self.violated(
                f"n{machine.host.node_id} acknowledges {request.operation} by the record at"
                f" {answer.offset}, which was {whose}'s",
                machine,
            )


class ViewsNeverGoBack(MetadataInvariant):
    """A broker never shows older metadata than before, in this life or another."""

    id = "INV-48"

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        #: By node: how far what it showed last reached.
        self._shown: dict[int, int] = {}

    def replied(
        self, machine: Machine, request: ClientRequest, answer: ClientAnswer, floor: int
    ) -> None:
        is_shown = answer.outcome == "ok" and answer.offset is not None
        if not is_shown or not self.ghost.is_view(machine, request):
            return
        node_id, offset = int(machine.host.node_id), answer.offset or 0
        if offset < self._shown.get(node_id, 0):
            raise self.violated(
                f"n{node_id} shows {request.key} as of offset {offset}, and has shown what was at"
                f" {self._shown[node_id]}",
                machine,
            )
        self._shown[node_id] = offset
