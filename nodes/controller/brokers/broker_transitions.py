"""Records of a broker's change of state: its own, and those of the partitions it concerns.

Each function gives records in the order in which a real controller writes them: where a log ends in
the middle of them, what is there makes sense alone, and the rest is decided again. They may be more
than one batch takes. Must never look at more than the image: the caller checks that the change is
due.

Source: KIP-631; KIP-841 (controlled shutdown, no fenced broker in an ISR); a real controller's
replication control.
"""

from collections.abc import Callable, Iterable, Iterator

from splitbrain.nodes.controller.basis.decisions import View
from splitbrain.nodes.controller.basis.leaderships import (
    PartitionAt,
    partitions_in_directory,
    partitions_in_sync_on,
    partitions_without_leader,
)
from splitbrain.nodes.controller.basis.registrations import is_active
from splitbrain.nodes.controller.partitions.partition_change import (
    Target,
    automatic_election,
    partition_change,
)
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)

_FENCE = 1
_UNFENCE = -1


def fenced(view: View, broker: RegisterBrokerRecord) -> list[MetadataRecord]:
    """The broker leaves the ISRs and leads nothing more; then it is fenced."""
    return [
        *_without_broker(view.image, broker.broker_id),
        BrokerRegistrationChangeRecord(broker.broker_id, broker.broker_epoch, fenced=_FENCE),
    ]


def unfenced(view: View, broker: RegisterBrokerRecord) -> list[MetadataRecord]:
    """The broker is unfenced; then it leads what nobody could."""

    def may_lead(broker_id: int) -> bool:
        # The image still shows it fenced.
        return broker_id == broker.broker_id or is_active(view.image, broker_id)

    records: list[MetadataRecord] = [
        BrokerRegistrationChangeRecord(broker.broker_id, broker.broker_epoch, fenced=_UNFENCE)
    ]
    if view.leaderships.leaderless_count(view.image):
        leaderless = partitions_without_leader(view.image)
        records += leader_changes(view.image, leaderless, may_lead)
    return records


def shutting_down(view: View, broker: RegisterBrokerRecord) -> list[MetadataRecord]:
    """The broker is about to go: it leaves the ISRs and leads nothing more."""
    change = BrokerRegistrationChangeRecord(
        broker.broker_id, broker.broker_epoch, in_controlled_shutdown=1
    )
    begun = () if broker.in_controlled_shutdown else (change,)
    return [*begun, *_without_broker(view.image, broker.broker_id)]


def replaced(view: View, broker_id: int) -> list[MetadataRecord]:
    """A new incarnation comes: whatever an earlier one led or was in sync with is no longer so."""
    return list(_without_broker(view.image, broker_id))


def unregistered(view: View, broker: RegisterBrokerRecord) -> list[MetadataRecord]:
    """The broker leaves the ISRs and leads nothing more; then it is forgotten."""
    return [
        *_without_broker(view.image, broker.broker_id),
        UnregisterBrokerRecord(broker.broker_id, broker.broker_epoch),
    ]


def directories_lost(
    view: View, broker: RegisterBrokerRecord, offline: Iterable[str]
) -> list[MetadataRecord]:
    """Replicas in directories that failed leave the ISRs; then the directories are gone.

    Nothing for directories that the broker has not, or no longer has.
    """
    gone = frozenset(offline)
    lost = [each for each in broker.log_dirs if each in gone]
    if not lost:
        return []
    records: list[MetadataRecord] = []
    for directory in lost:
        concerned = partitions_in_directory(view.image, directory)
        records += without_broker(view.image, broker.broker_id, concerned)
    left = tuple([each for each in broker.log_dirs if each not in gone])
    # Without any left the record says nothing; a broker that has none left halts.
    change = BrokerRegistrationChangeRecord(broker.broker_id, broker.broker_epoch, log_dirs=left)
    return [*records, change]


def directories_cordoned(
    broker: RegisterBrokerRecord, cordoned: tuple[str, ...] | None
) -> list[MetadataRecord]:
    """Return the broker's cordoned directories, which take nothing new; None: not told."""
    known = broker.cordoned_log_dirs
    if cordoned is None or (known is not None and set(known) == set(cordoned)):
        return []
    change = BrokerRegistrationChangeRecord(
        broker.broker_id, broker.broker_epoch, cordoned_log_dirs=cordoned
    )
    return [change]


def without_broker(
    image: MetadataImage, broker_id: int, partitions: Iterable[PartitionAt]
) -> Iterator[PartitionChangeRecord]:
    """The broker leaves the ISRs of these partitions and leads none of them."""

    def may_lead(other_id: int) -> bool:
        return other_id != broker_id and is_active(image, other_id)

    return leader_changes(image, partitions, may_lead, leaving=broker_id)


def leader_changes(
    image: MetadataImage,
    partitions: Iterable[PartitionAt],
    may_lead: Callable[[int], bool],
    leaving: int | None = None,
) -> Iterator[PartitionChangeRecord]:
    """Leaders for these partitions as far as there are any, and the ISRs without who leaves."""
    for at in partitions:
        isr = tuple([each for each in at.state.isr if each != leaving])
        target = Target(isr=isr, election=automatic_election(image, at.topic.name))
        record = partition_change(image, at, target, may_lead)
        if record is not None:
            yield record


def _without_broker(image: MetadataImage, broker_id: int) -> Iterator[PartitionChangeRecord]:
    return without_broker(image, broker_id, partitions_in_sync_on(image, broker_id))
