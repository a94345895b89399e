"""Puts a node together from what lies in its data folder: recovery, and nothing that waits.

Two steps, since some of a node's surroundings carry its incarnation: ``begin_life`` takes the
number, ``assemble`` recovers log and quorum state. Nothing is sent before ``Node.start``.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from splitbrain.nodes.quorum.errors import StorageMismatch, UnreadableRecordError
from splitbrain.nodes.quorum.identifiers import Incarnation, NodeId
from splitbrain.nodes.quorum.persistent import EMPTY_STATE, SnapshotId
from splitbrain.nodes.quorum.random_source import RandomSource
from splitbrain.nodes.quorum.replica import Replica
from splitbrain.nodes.quorum.settings import QuorumSettings
from splitbrain.nodes.quorum.voters import ReplicaKey
from splitbrain.nodes.server.host.applier import Applier
from splitbrain.nodes.server.host.disk import Disk
from splitbrain.nodes.server.host.incarnation import next_incarnation
from splitbrain.nodes.server.host.layer import Layer
from splitbrain.nodes.server.host.node import Node, NodeParts
from splitbrain.nodes.server.host.snapshot_files import LoadedSnapshot, SnapshotFiles
from splitbrain.nodes.server.host.state_machine import StateMachine
from splitbrain.nodes.server.host.surroundings import Surroundings
from splitbrain.nodes.server.registers.client_service import register_layer
from splitbrain.nodes.storage.errors import StorageError
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.storage.identity import StorageIdentity, load_identity
from splitbrain.nodes.storage.log import SEGMENT_BYTES, LogStore
from splitbrain.nodes.storage.quorum_state import QuorumStateFile
from splitbrain.nodes.wire.batches import RecordBatch
from splitbrain.nodes.wire.snapshots import SnapshotReader


class NodeMaterials(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of a node, besides its surroundings."""

    filesystem: FileSystem
    data_folder: Path
    #: Owner that the data folder must have.
    cluster_id: str
    node_id: NodeId
    settings: QuorumSettings
    #: Draws the election timeouts.
    random: RandomSource
    #: One past the last life that is known from elsewhere: a wiped disk has no counter.
    incarnation_min: int = 0
    #: Makes what stands above the log; None for registers.
    make_layer: Callable[[], Layer] | None = None
    #: Of the log; an append that would make a segment longer begins the next.
    segment_bytes: int = SEGMENT_BYTES


class Life(msgspec.Struct, frozen=True):
    """One life of a node."""

    identity: StorageIdentity
    incarnation: Incarnation


def begin_life(materials: NodeMaterials) -> Life:
    """Check whose data folder it is and take the number of this life, durably.

    Raises:
        NotFormattedError, ForeignStorageError, CorruptStorageError: the folder is not this node's.
        IncarnationError: the incarnation's counter is unreadable.
        OSError: a file cannot be read or written.
    """
    identity = load_identity(
        materials.filesystem,
        materials.data_folder,
        cluster_id=materials.cluster_id,
        node_id=materials.node_id,
    )
    number = next_incarnation(
        materials.filesystem, materials.data_folder, materials.incarnation_min
    )
    return Life(identity, Incarnation(number))


def assemble(
    materials: NodeMaterials,
    life: Life,
    surroundings: Surroundings,
    make_node: Callable[[NodeParts, Surroundings], Node] = Node,
) -> Node:
    """Recover the data folder and build the node; ``make_node`` may be a class derived from it.

    A refusal of the storage goes to the state events first.

    Raises:
        StorageError: the folder is in use or corrupt, or its disk failed; nothing stays open.
        StorageMismatch: its log and its quorum state cannot belong together.
        UnreadableRecordError: its snapshot is none of this build's.
        OSError: a file cannot be read.
    """
    filesystem, folder, settings = materials.filesystem, materials.data_folder, materials.settings
    quorum_state = QuorumStateFile(filesystem, folder)
    state = EMPTY_STATE
    log: LogStore | None = None
    layer = (materials.make_layer or register_layer)()
    first = _FirstState(layer.machine, surroundings)
    try:
        state = quorum_state.read() or EMPTY_STATE
        log, shape = LogStore.open(
            filesystem,
            folder,
            segment_bytes=materials.segment_bytes,
            load=first.load,
            ignored=first.ignored,
        )
        replica = Replica(
            settings=settings,
            voters=life.identity.voters,
            me=ReplicaKey(life.identity.node_id, life.identity.directory_id),
            cluster_id=life.identity.cluster_id,
            incarnation=life.incarnation,
            state=state,
            log=shape,
            random=materials.random,
            now=surroundings.timers.now(),
        )
    except (StorageError, StorageMismatch, UnreadableRecordError) as error:
        if log is not None:
            log.close()
        surroundings.state_events.write("fatal", state.epoch, reason=str(error))
        raise
    jobs = surroundings.disk_jobs
    disk = Disk(jobs, surroundings.timers, log, quorum_state)
    applier = Applier(disk, layer.machine)
    if first.found is not None:
        applier.load(first.found.snapshot_id, first.found.timestamp_ms, first.found.loading)
    parts = NodeParts(
        identity=life.identity,
        incarnation=life.incarnation,
        replica=replica,
        disk=disk,
        snapshots=SnapshotFiles(jobs, filesystem, folder, layer.machine, surroundings.log_lines),
        applier=applier,
        make_service=layer.make_service,
        settings=settings,
    )
    return make_node(parts, surroundings)


class _FirstState:
    """The state that a life begins with, from the newest snapshot that is whole."""

    def __init__(self, machine: StateMachine, surroundings: Surroundings) -> None:
        self._machine = machine
        self._surroundings = surroundings
        self.found: LoadedSnapshot | None = None

    def load(self, snapshot_id: SnapshotId, batches: Iterator[RecordBatch]) -> None:
        """Read a snapshot to its end; raises WireError if it is not whole."""
        reader, loading = SnapshotReader(snapshot_id, batches), self._machine.begin_loading()
        for record in reader.records():
            loading.add(record.value or b"")
        self.found = LoadedSnapshot(snapshot_id, reader.timestamp_ms, loading)

    def ignored(self, problem: str) -> None:
        """Say that a snapshot was not whole."""
        self._surroundings.log_lines.write("warning", "snapshot ignored", reason=problem)
