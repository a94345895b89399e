"""Records that a controller writes first once it leads.

Into an empty log the levels of the features, as one metadata transaction; into another one nothing,
unless its last leader left a transaction open: that one is aborted. Until these records are
committed the leader must decide nothing else.

Source: KIP-868; a real controller's activation records.
"""

from collections.abc import Iterator
from typing import Final

from splitbrain.nodes.metadata.image import METADATA_VERSION, MetadataImage
from splitbrain.nodes.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
)
from splitbrain.nodes.quorum.identifiers import Offset
from splitbrain.nodes.wire.controller_apis import PINNED_LEVELS

TRANSACTION_NAME: Final = "Bootstrap records"
ABORT_REASON: Final = "Controller failover"
#: Its level stands in raft's own records.
_KRAFT_VERSION: Final = "kraft.version"


def activation_records(
    image: MetadataImage, transaction_opened_at: Offset | None
) -> tuple[MetadataRecord, ...]:
    """Records of a new leader, one after the other; often none.

    ``transaction_opened_at``: where the log's open transaction begins, None if none is open. A
    transaction that is not ended counts for nothing, so an aborted bootstrap leaves the image empty
    and is done again.
    """
    records: list[MetadataRecord] = []
    if transaction_opened_at is not None:
        records.append(AbortTransactionRecord(ABORT_REASON))
    if image.metadata_version is None:
        records += (
            BeginTransactionRecord(TRANSACTION_NAME),
            *_bootstrap_records(),
            EndTransactionRecord(),
        )
    return tuple(records)


def _bootstrap_records() -> Iterator[MetadataRecord]:
    # The metadata version first, since it says how to read what follows.
    yield FeatureLevelRecord(METADATA_VERSION, PINNED_LEVELS[METADATA_VERSION])
    for name, level in sorted(PINNED_LEVELS.items()):
        if level > 0 and name not in {METADATA_VERSION, _KRAFT_VERSION}:
            yield FeatureLevelRecord(name, level)
