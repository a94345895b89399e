"""Exceptions for wrong metadata, as one family.

Bytes that are no record, and records that contradict what the log said before. Neither can be
skipped: a node that applied one record less than its peers would serve another cluster.
"""


class MetadataError(Exception):
    """Metadata that cannot be read or applied."""


class RecordError(MetadataError):
    """Bytes that are no metadata record."""


class UnknownRecordError(RecordError):
    """A record of a type or a version that this build does not read; it names both."""

    def __init__(self, api_key: int, version: int, problem: str) -> None:
        self.api_key = api_key
        self.version = version
        super().__init__(problem)


class ContradictionError(MetadataError):
    """A record that cannot follow what the log said before."""
