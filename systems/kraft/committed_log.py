"""Dumps the committed part of one node's log from its data folder, in neutral form.

Raft keeps no high watermark on disk, so what is committed must be known from elsewhere. The rule:
a node's log is committed up to the highest offset that *this node itself* ever said to be so, in
its state events (``high-watermark``, and ``commit`` while it led) or in its status when the cluster
had converged. That is sound, because a committed offset stays committed, through restarts too, and
because a node says so of its own log only; and it is as far as one may go: beyond it a node that
lagged may hold records that a later leader would cut off. Where a log ends before what its node
once called committed, the dump ends with the log: that is a finding, not an error. A log
that has lost its beginning to a snapshot is dumped from where it begins.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from splitbrain.contracts.committed import CommittedLog, CommittedRecord
from splitbrain.contracts.errors import UNREADABLE, HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from splitbrain.nodes.metadata.errors import MetadataError
from splitbrain.nodes.registers.commands import UnknownCommandError, command_fields, decode_command
from splitbrain.nodes.server.machine.configuration import ConfigurationError, read_configuration
from splitbrain.nodes.storage.errors import StorageError
from splitbrain.nodes.storage.reading import LoggedRecord, log_start, read_committed
from splitbrain.systems.kraft.deployment import CONFIGURATION_FILE, CONFIGURATION_FOLDER
from splitbrain.systems.kraft.metadata_records import contents, names_before

_COMMITTING_KINDS = frozenset({"high-watermark", "commit"})


def committed_log(
    node: NodeName, data_folder: Path, state_events: Path | None, converged_end: int
) -> CommittedLog:
    """Read a stopped node's data folder.

    Args:
        node: whose folder it is.
        data_folder: as collected.
        state_events: the node's own file, None or missing if there is none.
        converged_end: its high watermark when the cluster had converged, -1 if it never had.

    Raises:
        HarnessError: the folder is unreadable, or nothing says what was committed.
    """
    end = max(converged_end, committed_end(state_events))
    if end < 0:
        raise HarnessError(
            "dump the committed log",
            f"{node}: {data_folder}",
            "neither state events nor a converged status say what was committed",
            "The node may never have reached a quorum; look at its output.",
        )
    try:
        start = min(log_start(data_folder).end_offset, end)
        logged = list(read_committed(data_folder, end))
        if is_metadata(data_folder):
            records = neutral_metadata(logged, names_before(data_folder, start))
        else:
            records = tuple(map(neutral, logged))
    except (StorageError, OSError, UnknownCommandError, MetadataError) as error:
        raise HarnessError(
            "dump the committed log",
            f"{node}: {data_folder}",
            str(error),
            "Keep the folder: it shows what the node did to its disk.",
        ) from error
    last = records[-1].offset + 1 if records else start
    return CommittedLog(node=node, start_offset=start, end_offset=last, records=records)


def committed_end(state_events: Path | None) -> int:
    """Highest offset that the node called committed, in any of its lives; -1 if it never did.

    Lines that a kill left torn are passed over.

    Raises:
        HarnessError: the file cannot be read.
    """
    if state_events is None or not state_events.exists():
        return -1
    decoder = msgspec.json.Decoder(StateEvent)
    end = -1
    try:
        with state_events.open("rb") as file:
            for line in file:
                try:
                    event = decoder.decode(line)
                except UNREADABLE:
                    continue
                if event.kind in _COMMITTING_KINDS and event.offset is not None:
                    end = max(end, event.offset)
    except OSError as error:
        raise HarnessError(
            "read state events", str(state_events), str(error.strerror), "Look at the run folder."
        ) from error
    return end


def neutral(record: LoggedRecord) -> CommittedRecord:
    """One record in the form that all systems share.

    The digest covers the whole record, the leader's time stamp included: nodes replicate bytes.

    Raises:
        UnknownCommandError: the record holds no command.
    """
    kind: str | None = None
    key: str | None = None
    value: Any = None
    if not record.is_control:
        kind, key, value = command_fields(decode_command(record.value or b""))
    return _neutral(record, kind, key, value)


def neutral_metadata(
    logged: Sequence[LoggedRecord], names: Mapping[str, str]
) -> tuple[CommittedRecord, ...]:
    """Metadata records in the form that all systems share; see ``systems.kraft.metadata_records``.

    Args:
        logged: of one log, in order.
        names: topic ids to the names of topics that were there before.

    Raises:
        RecordError: a record is none of the metadata.
    """
    told = contents(logged, names)
    return tuple(_neutral(record, *said) for record, said in zip(logged, told, strict=True))


def is_metadata(data_folder: Path) -> bool:
    """Whether the node whose data these are had metadata above its log, by its configuration.

    Raises:
        HarnessError: the configuration is there and cannot be read.
    """
    path = data_folder.parent / CONFIGURATION_FOLDER / CONFIGURATION_FILE
    if not path.exists():
        return False
    try:
        return read_configuration(path).state_machine == "metadata"
    except ConfigurationError as error:
        raise HarnessError(
            "dump the committed log", str(path), str(error), "Keep the run folder as it was made."
        ) from error


def _neutral(
    record: LoggedRecord, kind: str | None, key: str | None, value: Any
) -> CommittedRecord:
    content = msgspec.msgpack.encode(
        (record.epoch, record.timestamp_ms, record.is_control, record.key, record.value)
    )
    digest = hashlib.blake2b(content, digest_size=16).hexdigest()
    return CommittedRecord(record.offset, record.epoch, kind, key, value, digest)
