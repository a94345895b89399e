"""Puts a node together from what lies in its data folder: recovery, and nothing that waits.

Two steps, since some of a node's surroundings carry its incarnation: ``begin_life`` takes the
number, ``assemble`` recovers log and quorum state. Used on the machine and in simulation alike.
Must never send or listen: a node begins with ``Node.start``.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from nodes.quorum.errors import StorageMismatch
from nodes.quorum.identifiers import Incarnation, NodeId
from nodes.quorum.persistent import EMPTY_STATE
from nodes.quorum.random_source import RandomSource
from nodes.quorum.replica import Replica
from nodes.quorum.settings import QuorumSettings
from nodes.quorum.voters import ReplicaKey
from nodes.registers.machine import RegisterMachine
from nodes.server.applier import Applier
from nodes.server.disk import Disk
from nodes.server.incarnation import next_incarnation
from nodes.server.node import Node, NodeParts
from nodes.server.surroundings import Surroundings
from nodes.storage.errors import StorageError
from nodes.storage.filesystem import FileSystem
from nodes.storage.identity import StorageIdentity, load_identity
from nodes.storage.log import SEGMENT_BYTES, LogStore
from nodes.storage.quorum_state import QuorumStateFile


class NodeMaterials(msgspec.Struct, frozen=True, kw_only=True):
    """What a node is made from, besides its surroundings."""

    filesystem: FileSystem
    data_folder: Path
    #: Who the data folder must belong to.
    cluster_id: str
    node_id: NodeId
    settings: QuorumSettings
    #: Draws the election timeouts.
    random: RandomSource
    #: One past the last life that is known from elsewhere: a wiped disk has no counter.
    incarnation_min: int = 0
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

    What the storage refuses goes to the state events first.

    Raises:
        StorageError: the folder is in use or corrupt, or its disk failed; nothing stays open.
        StorageMismatch: its log and its quorum state cannot belong together.
        OSError: a file cannot be read.
    """
    filesystem, folder, settings = materials.filesystem, materials.data_folder, materials.settings
    quorum_state = QuorumStateFile(filesystem, folder, bugs=settings.bugs)
    state = EMPTY_STATE
    log: LogStore | None = None
    try:
        state = quorum_state.read() or EMPTY_STATE
        log, shape = LogStore.open(
            filesystem, folder, segment_bytes=materials.segment_bytes, bugs=settings.bugs
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
    except (StorageError, StorageMismatch) as error:
        if log is not None:
            log.close()
        surroundings.state_events.write("fatal", state.epoch, reason=str(error))
        raise
    disk = Disk(
        surroundings.disk_jobs,
        surroundings.timers,
        log,
        quorum_state,
        is_lazy=settings.bugs.ack_before_fsync,
    )
    parts = NodeParts(
        node_id=life.identity.node_id,
        directory_id=life.identity.directory_id,
        incarnation=life.incarnation,
        replica=replica,
        disk=disk,
        applier=Applier(disk, RegisterMachine(), shape.start_offset),
        bugs=settings.bugs,
    )
    return make_node(parts, surroundings)
