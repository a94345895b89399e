"""How many records one request may make: a real controller refuses more, and so does ours."""

from collections.abc import Iterable

from splitbrain.nodes.controller.basis.decisions import Refusal, View
from splitbrain.nodes.metadata.records import MetadataRecord, TopicRecord
from splitbrain.nodes.wire.errors import ApiError


class RecordBatch:
    """Records of one decision, up to the limit."""

    def __init__(self, view: View) -> None:
        self._records_max = view.settings.records_per_batch_max
        self.records: list[MetadataRecord] = []
        #: Of topics that are made in the batch.
        self.topic_ids: set[str] = set()

    def check_room(self, count: int) -> None:
        """Refuse so many records more; raises Refusal: POLICY_VIOLATION, they would be too many."""
        if len(self.records) + count > self._records_max:
            raise Refusal(
                ApiError.POLICY_VIOLATION, "Unable to perform excessively large batch operation."
            )

    def add(self, records: Iterable[MetadataRecord]) -> None:
        """Take records, all of them or none; raises as ``check_room``."""
        added = list(records)
        self.check_room(len(added))
        self.records += added
        self.topic_ids.update(each.topic_id for each in added if isinstance(each, TopicRecord))
