"""One leadership of a controller: what it decides, from its activation to the loss of its epoch.

Sees what it appended before it is committed, and forgets it with the leadership: a new one begins
from what is committed. Whoever hosts it appends the records of a decision where it was told that
they will stand, says so, and answers once they are committed.

Source: KIP-631; a real controller's events, of which one is handled at a time; KIP-868 and its
activation records.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from splitbrain.nodes.controller.basis.contacts import Contacts
from splitbrain.nodes.controller.basis.decisions import Decision, View
from splitbrain.nodes.controller.basis.leaderships import Leaderships
from splitbrain.nodes.controller.basis.settings import ControllerSettings
from splitbrain.nodes.controller.brokers.fencing import fence_stale
from splitbrain.nodes.controller.configs.features import KRAFT_VERSION
from splitbrain.nodes.controller.partitions.leader_elections import balance, elect_unclean
from splitbrain.nodes.controller.roles.handlers import HANDLERS
from splitbrain.nodes.metadata.delta import MetadataDelta
from splitbrain.nodes.metadata.image import METADATA_VERSION, MetadataImage
from splitbrain.nodes.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
)
from splitbrain.nodes.metadata.transactions import Provenance
from splitbrain.nodes.quorum.identifiers import Epoch, Microseconds, NodeId, Offset
from splitbrain.nodes.quorum.random_source import RandomSource
from splitbrain.nodes.wire.apis import ApiKey
from splitbrain.nodes.wire.controller_apis import PINNED_LEVELS

_MARKERS: Final = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)
_US_PER_MS: Final = 1_000
_US_PER_S: Final = 1_000_000


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a controller for its whole life."""

    cluster_id: str
    node_id: NodeId
    settings: ControllerSettings
    #: Must differ from life to life: ids of topics come from it.
    random: RandomSource


class Prepared(msgspec.Struct, frozen=True):
    """Records that are to be appended, and what the metadata is once they are."""

    records: Sequence[MetadataRecord]
    image: MetadataImage


class _Election(msgspec.Struct):
    """An election that nobody asks for, and when its turn comes."""

    elect: Callable[[View], Decision | None]
    interval_us: int
    at: Microseconds


class ActiveController:
    """The controller of one epoch."""

    def __init__(
        self, identity: Identity, image: MetadataImage, epoch: Epoch, now: Microseconds
    ) -> None:
        """Begins with what is committed, all that earlier leaders wrote among it."""
        self._identity = identity
        self._epoch = epoch
        #: With everything that was appended in it.
        self.image = image
        self._contacts = Contacts.of_new_leader(image, now)
        self._leaderships = Leaderships()
        intervals_us = (
            (balance, identity.settings.leader_imbalance_check_interval_s * _US_PER_S),
            (elect_unclean, identity.settings.unclean_leader_election_interval_ms * _US_PER_MS),
        )
        self._elections = [
            _Election(elect, interval_us, Microseconds(now + interval_us))
            for elect, interval_us in intervals_us
            if interval_us
        ]
        self._no_op_at = now
        self._put_off_no_op(now)

    def activation(self, transaction_opened_at: Offset | None) -> Sequence[MetadataRecord]:
        """Return the records to be appended, and committed, before anything is decided; often none.

        An empty log begins with the levels of the features, as one metadata transaction.
        ``transaction_opened_at``: where the log's open transaction begins, None if none is open. A
        transaction that is not ended counts for nothing, so an aborted bootstrap leaves the image
        empty and is done again.
        """
        records: list[MetadataRecord] = []
        if transaction_opened_at is not None:
            records.append(AbortTransactionRecord("Controller failover"))
        if self.image.metadata_version is None:
            records += (
                BeginTransactionRecord("Bootstrap records"),
                *_bootstrap_records(),
                EndTransactionRecord(),
            )
        return records

    def decide(
        self,
        api_key: ApiKey,
        request: msgspec.Struct,
        version: int,
        *,
        now: Microseconds,
        next_offset: Offset,
    ) -> Decision:
        """Decide a request; raises KeyError: a controller does not serve that API."""
        return HANDLERS[api_key](self._view(now, next_offset), request, version)

    def due(self, now: Microseconds, next_offset: Offset) -> Decision | None:
        """Decide what is due though nobody asked; to be called again until it returns None."""
        view = self._view(now, next_offset)
        fenced = fence_stale(view)
        if fenced is not None:
            return fenced
        for election in self._elections:
            if now >= election.at:
                elected = election.elect(view)
                if elected is not None:
                    return elected
                election.at = Microseconds(now + election.interval_us)
        if now >= self._no_op_at and self._identity.settings.max_idle_interval_ms:
            self._put_off_no_op(now)
            return Decision(None, (NoOpRecord(),))
        return None

    @property
    def deadline(self) -> Microseconds | None:
        """When ``due`` may have something to say; None for never."""
        settings = self._identity.settings
        moments = [election.at for election in self._elections]
        stale = self._contacts.next_stale_at(settings.broker_session_timeout)
        if stale is not None:
            moments.append(stale)
        if settings.max_idle_interval_ms:
            moments.append(self._no_op_at)
        return min(moments, default=None)

    def prepare(self, records: Sequence[MetadataRecord], next_offset: Offset) -> Prepared:
        """The metadata with these records, which stand from ``next_offset`` on; nothing changes.

        Raises ContradictionError: they cannot follow what was appended: a decision was wrong.
        """
        delta = MetadataDelta(self.image)
        for record in records:
            # A transaction of a leader's own ends in the turn that begins it.
            if not isinstance(record, _MARKERS):
                delta.replay(record)
        last_offset = Offset(next_offset + len(records) - 1)
        return Prepared(records, delta.apply(Provenance(last_offset, self._epoch)))

    def appended(self, prepared: Prepared) -> None:
        """Note that the records are in the leader's log."""
        self.image = prepared.image

    def _view(self, now: Microseconds, next_offset: Offset) -> View:
        return View(
            image=self.image,
            next_offset=next_offset,
            now=now,
            settings=self._identity.settings,
            contacts=self._contacts,
            random=self._identity.random,
            cluster_id=self._identity.cluster_id,
            node_id=self._identity.node_id,
            leaderships=self._leaderships,
        )

    def _put_off_no_op(self, now: Microseconds) -> None:
        interval_ms = self._identity.settings.max_idle_interval_ms
        self._no_op_at = Microseconds(now + interval_ms * _US_PER_MS)


def _bootstrap_records() -> Iterator[MetadataRecord]:
    # The metadata version first, since it says how to read what follows.
    yield FeatureLevelRecord(METADATA_VERSION, PINNED_LEVELS[METADATA_VERSION])
    for name, level in sorted(PINNED_LEVELS.items()):
        # The level of KRAFT_VERSION stands in raft's own records.
        if level > 0 and name not in {METADATA_VERSION, KRAFT_VERSION}:
            yield FeatureLevelRecord(name, level)
