"""Metadata records as bytes, and back: what stands in the value of a record of the log.

A frame version, the record type's key and its version (unsigned varints each), then the record in
the flexible form. A type or a version that this build does not know is refused by name, and so is
every byte that is malformed or left over, all as ``RecordError``.

Source: KIP-631, "Record Formats"; the framing as a real controller writes it.
"""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.errors import RecordError, UnknownRecordError
from splitbrain.nodes.metadata.records import MetadataRecord
from splitbrain.nodes.wire.codec import Kind
from splitbrain.nodes.wire.declared import kind_of, lowest_version
from splitbrain.nodes.wire.errors import WireError
from splitbrain.nodes.wire.varints import decode_unsigned, encode_unsigned

FRAME_VERSION: Final = 1
#: Records that stay decoded, each of some hundred bytes.
_RECORDS_KEPT_MAX: Final = 16_384


class RecordType(NamedTuple):
    """One type of record."""

    api_key: int
    struct: type[MetadataRecord]
    layout: Kind
    #: All versions from 0 to this one are read and written.
    version_max: int


def _types(*rows: tuple[int, type[MetadataRecord], int]) -> tuple[RecordType, ...]:
    return tuple(
        RecordType(key, struct, kind_of(struct, flexible=True), last) for key, struct, last in rows
    )


#: Key, record and last version; the key 6 was never given out, 13 and 16 are no longer.
RECORD_TYPES: Final = _types(
    (0, records.RegisterBrokerRecord, 4),
    (1, records.UnregisterBrokerRecord, 0),
    (2, records.TopicRecord, 0),
    (3, records.PartitionRecord, 2),
    (4, records.ConfigRecord, 0),
    (5, records.PartitionChangeRecord, 2),
    (7, records.FenceBrokerRecord, 0),
    (8, records.UnfenceBrokerRecord, 0),
    (9, records.RemoveTopicRecord, 0),
    (10, records.DelegationTokenRecord, 0),
    (11, records.UserScramCredentialRecord, 0),
    (12, records.FeatureLevelRecord, 0),
    (14, records.ClientQuotaRecord, 0),
    (15, records.ProducerIdsRecord, 0),
    (17, records.BrokerRegistrationChangeRecord, 3),
    (18, records.AccessControlEntryRecord, 0),
    (19, records.RemoveAccessControlEntryRecord, 0),
    (20, records.NoOpRecord, 0),
    (21, records.ZkMigrationStateRecord, 0),
    (22, records.RemoveUserScramCredentialRecord, 0),
    (23, records.BeginTransactionRecord, 0),
    (24, records.EndTransactionRecord, 0),
    (25, records.AbortTransactionRecord, 0),
    (26, records.RemoveDelegationTokenRecord, 0),
    (27, records.RegisterControllerRecord, 0),
    (28, records.ClearElrRecord, 0),
)
_BY_KEY: Final[Mapping[int, RecordType]] = MappingProxyType(
    {record_type.api_key: record_type for record_type in RECORD_TYPES}
)
_BY_STRUCT: Final[Mapping[type[MetadataRecord], RecordType]] = MappingProxyType(
    {record_type.struct: record_type for record_type in RECORD_TYPES}
)
#: Header before the body, by type and version.
_HEADS: Final[Mapping[type[MetadataRecord], tuple[bytes, ...]]] = MappingProxyType(
    {
        record_type.struct: tuple(
            b"".join(map(encode_unsigned, (FRAME_VERSION, record_type.api_key, version)))
            for version in range(record_type.version_max + 1)
        )
        for record_type in RECORD_TYPES
    }
)


def record_type_of(record: MetadataRecord) -> RecordType:
    """Return the type that the record is of."""
    return _BY_STRUCT[type(record)]


def written_version(record: MetadataRecord) -> int:
    """Return the version in which a real controller writes this record under metadata.version 30.

    The highest, but of a change of a broker's registration the lowest that can say it.
    """
    record_type = _BY_STRUCT[type(record)]
    if record_type.struct is records.BrokerRegistrationChangeRecord:
        return lowest_version(record)
    return record_type.version_max


def encode_record(record: MetadataRecord, version: int | None = None) -> bytes:
    """Return the record's bytes; raises ValueError for what ``version`` cannot say.

    None: the version of ``written_version``.
    """
    record_type = _BY_STRUCT[type(record)]
    if version is None:
        version = written_version(record)
    if not 0 <= version <= record_type.version_max:
        raise ValueError(f"{record_type.struct.__name__} has no version {version}")
    parts = [_HEADS[record_type.struct][version]]
    record_type.layout.write(record, version, parts)
    return b"".join(parts)


# The same bytes are read when they are committed, from a log that is read anew, and by whoever
# follows within one process.
@lru_cache(_RECORDS_KEPT_MAX)
def decode_record(data: bytes) -> MetadataRecord:
    """Return the record in these bytes, all of which it must fill.

    Raises:
        UnknownRecordError: its type or its version is not known here.
        RecordError: the bytes are no metadata record.
    """
    try:
        frame_version, position = decode_unsigned(data, 0)
        api_key, position = decode_unsigned(data, position)
        version, position = decode_unsigned(data, position)
        if frame_version != FRAME_VERSION:
            raise RecordError(f"a metadata record has the unknown frame version {frame_version}")
        record_type = _known_type(api_key, version)
        record, position = record_type.layout.read(data, position, version)
    except WireError as error:
        raise RecordError(f"a metadata record is malformed: {error}") from error
    if position != len(data):
        name = record_type.struct.__name__
        raise RecordError(f"{len(data) - position} bytes are left over after a {name}")
    return record


def _known_type(api_key: int, version: int) -> RecordType:
    record_type = _BY_KEY.get(api_key)
    if record_type is None:
        raise UnknownRecordError(
            api_key,
            version,
            f"metadata record type {api_key} (version {version}) is unknown to this build, which "
            "reads those of Kafka 4.3",
        )
    if version > record_type.version_max:
        raise UnknownRecordError(
            api_key,
            version,
            f"{record_type.struct.__name__} (type {api_key}) has version {version}; this build "
            f"reads up to {record_type.version_max}",
        )
    return record_type
