"""What a new leader writes first."""

from splitbrain.nodes.controller.roles.activation import activation_records
from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.delta import image_after
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.transactions import MetadataBatch, TransactionBuffer
from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.wire.controller_apis import PINNED_LEVELS
from tests.unit.nodes.controller.clusters import image_with

BOOTSTRAP = (
    records.BeginTransactionRecord("Bootstrap records"),
    records.FeatureLevelRecord("metadata.version", 30),
    records.FeatureLevelRecord("group.version", 1),
    records.FeatureLevelRecord("share.version", 1),
    records.FeatureLevelRecord("streams.version", 1),
    records.FeatureLevelRecord("transaction.version", 2),
    records.EndTransactionRecord(),
)
ABORT = records.AbortTransactionRecord("Controller failover")


def batch(base_offset: int, *some: records.MetadataRecord) -> MetadataBatch:
    return MetadataBatch(
        Offset(base_offset), Offset(base_offset + len(some) - 1), Epoch(1), 1000, some
    )


def test_an_empty_log_begins_with_the_pinned_levels() -> None:
    assert activation_records(MetadataImage(), None) == BOOTSTRAP


def test_a_bootstrap_that_was_cut_off_is_aborted_and_done_again() -> None:
    assert activation_records(MetadataImage(), Offset(3)) == (ABORT, *BOOTSTRAP)


def test_a_log_with_a_version_is_left_as_it_is() -> None:
    assert activation_records(image_with([]), None) == ()


def test_an_open_transaction_is_aborted() -> None:
    assert activation_records(image_with([]), Offset(7)) == (ABORT,)


def test_the_image_holds_the_levels_after_a_bootstrap_in_two_attempts() -> None:
    buffer = TransactionBuffer()
    assert not buffer.add(batch(0, *BOOTSTRAP[:3]))
    image = MetadataImage()
    for settled in buffer.add(batch(3, *activation_records(image, buffer.opened_at))):
        image = image_after(image, settled)
    in_use = {
        name: level for name, level in PINNED_LEVELS.items() if level and name != "kraft.version"
    }
    assert image.features == in_use
    assert activation_records(image, buffer.opened_at) == ()
