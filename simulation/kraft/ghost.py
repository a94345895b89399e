"""Ghost state: what is true of a whole simulated quorum and known to no node of it.

Records ever committed, leaders and votes of all epochs, each machine's disk. Kept up by the
oracle whether or not an invariant watches. Must never influence a node, nor draw a random number.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

from splitbrain.nodes.quorum.identifiers import NO_EPOCH, DirectoryId, NodeId
from splitbrain.nodes.quorum.messages import VoteRequest
from splitbrain.nodes.quorum.persistent import EMPTY_STATE, QuorumState, SnapshotId
from splitbrain.nodes.quorum.voters import ReplicaKey
from splitbrain.nodes.storage.durable_mark import read_mark
from splitbrain.nodes.storage.errors import StorageError
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.storage.layout import DURABLE_LENGTH, QUORUM_STATE, log_folder
from splitbrain.nodes.storage.quorum_state import decode_quorum_state
from splitbrain.nodes.transport.client_protocol import ClientRequest
from splitbrain.simulation.disk.file_system import MemoryFileSystem
from splitbrain.simulation.kraft.copies import Copies
from splitbrain.simulation.kraft.disk_past import DiskPast
from splitbrain.simulation.kraft.host import Host
from splitbrain.simulation.kraft.layers import state_machine_of
from splitbrain.simulation.kraft.ledger import Ledger
from splitbrain.simulation.kraft.metadata.ledger import MetadataLedger
from splitbrain.simulation.kraft.mirrored_log import Codec, Entry, MirroredLog
from splitbrain.simulation.world.world import SimulatedWorld

#: Counts of a run.
_COUNTED: Final = (
    "lives", "elections", "truncations", "reads", "acknowledged", "votes", "cuts", "installed",
)  # fmt: skip


class Machine:
    """Facts of one host."""

    def __init__(self, host: Host, codec: Codec, committed: Sequence[Entry]) -> None:
        """``committed`` grows as the quorum commits."""
        self.host = host
        self._committed = committed
        #: History of its disk's faults.
        self.disk_past = DiskPast(host.disk)
        #: Records that its log held below its start.
        self.copies = Copies(host.disk, host.folder, self.disk_past)
        self._codec = codec
        #: While a life has begun: what its log holds.
        self.log: MirroredLog | None = None
        #: Known high watermark of the present life; -1: unknown.
        self.high_watermark = -1
        #: Records below it were said to be durable here, and not truncated since.
        self.promised = 0
        #: The same of the disk that the voter set names, once another one is in its place.
        self._promised_by_first = 0
        #: Content of the log when the last life ended.
        self.left: list[Entry] = []
        #: The same with its places; None before the first life has ended.
        self._log_left: MirroredLog | None = None
        #: The promise that the formats can keep when bytes rot: up to the durable mark.
        self.promised_below_mark = 0
        #: The latest quorum state that was durable when the node spoke.
        self.said = EMPTY_STATE
        #: Vote requests that inbound connections carry.
        self.asked: dict[int, VoteRequest] = {}
        #: Epoch of the last record, and end of the log, when they came.
        self.when_asked: dict[int, tuple[int, int]] = {}
        self._states: dict[bytes, QuorumState | None] = {}
        self._state_path = log_folder(host.folder) / QUORUM_STATE
        self._directory_id = host.directory_ids[-1]
        self._held: MirroredLog | None = None
        self._held_after = -1

    @property
    def key(self) -> ReplicaKey:
        """Node and disk."""
        return ReplicaKey(self.host.node_id, self.host.directory_ids[-1])

    def quorum_state(self) -> QuorumState | None:
        """Return the disk's durable content; None: nothing that can be read."""
        content = self.host.disk.durable_content(self._state_path)
        if content is None:
            return EMPTY_STATE
        if content not in self._states:
            try:
                self._states[content] = decode_quorum_state(content, self._state_path)
            except StorageError:
                self._states[content] = None
        return self._states[content]

    def durable_log(self) -> MirroredLog:
        """Return the disk content of a machine that is down."""
        notes = self.disk_past.count
        if self._held is None or notes != self._held_after:
            self._held, self._held_after = self.read_log(), notes
        return self._held

    def read_log(self) -> MirroredLog:
        """Return the disk's content, read anew from its bytes."""
        log = MirroredLog(self.host.folder, self._codec)
        log.read_disk(self.host.disk, self._committed)
        return log

    @property
    def promised_as_voter(self) -> int:
        """Up to where the disk that the voter set names has promised, gone or not.

        Until the next life begins a wiped disk's promise stands, even if a boot has formatted
        another one already.
        """
        is_first = self._directory_id == self.host.directory_ids[0]
        return self.promised if is_first else self._promised_by_first

    def last_of_log(self) -> tuple[int, int]:
        """Epoch of the last record, and where the log ends."""
        entries = [] if self.log is None else self.log.entries
        return (entries[-1].epoch, len(entries)) if entries else (NO_EPOCH, 0)

    def holds(self, first: int, expected: Sequence[Entry]) -> bool:
        """Whether the disk keeps these records at ``first`` and on, whatever happens."""
        log = self.log
        end = first + len(expected)
        if log is None:
            return self.durable_log().entries[first:end] == expected
        return log.entries[first:end] == expected and log.is_durable(self.host.disk, first, end)

    def mark(self) -> int:
        """Up to which offset the durable mark on the disk can tell rot from a torn tail."""
        files = cast(FileSystem, _DurableFiles(self.host.disk))
        try:
            return read_mark(files, log_folder(self.host.folder) / DURABLE_LENGTH).end_offset
        except StorageError:
            return 0

    def started(self) -> None:
        """Note that a life has begun."""
        disk_is_new = self._directory_id != self.host.directory_ids[-1]
        self.log = self.read_log()
        if self.disk_past.rotted_while_booting and self._log_left and not disk_is_new:
            # It has read them already: what it recovered is a part of what it had before, and lies
            # where that lay.
            self.log = self._log_left.upto(int(self.host.node.replica.log_end_offset))
        if disk_is_new:
            self._promised_by_first = self.promised_as_voter
            self._directory_id = self.host.directory_ids[-1]
            self.promised = self.promised_below_mark = 0
            self.said = EMPTY_STATE
            self.left = []
            self.copies.forget()
        self.high_watermark = -1
        self.asked.clear()
        self.when_asked.clear()
        self._held = None

    def ended(self) -> None:
        """Note that a life is over; the disk is as the end left it."""
        if self.log is not None:
            self.left, self._log_left = self.log.entries, self.log
            self.promised_below_mark = min(self.promised, self.mark())
        self.log = None
        self._held = None

    def harmed(self) -> None:
        """Bytes have changed: of a disk that is down the mark may say less now."""
        if self.log is None:
            self.promised_below_mark = min(self.promised_below_mark, self.mark())

    def judged(self) -> None:
        """Note that the end of the last life has been looked at."""
        self.disk_past.life_ended()


class _DurableFiles:
    """Return a disk's durable content, out of reach of the faults that wait for a read."""

    def __init__(self, disk: MemoryFileSystem) -> None:
        self._disk = disk

    def read(self, path: Path) -> bytes:
        content = self._disk.durable_content(path)
        if content is None:
            raise FileNotFoundError(path)
        return content


class Ghost:
    """Of the whole quorum; only ever grows."""

    def __init__(self, world: SimulatedWorld) -> None:
        self.world = world
        #: State after the committed records.
        is_of_registers = state_machine_of(world.scenario) == "registers"
        self.ledger = Ledger() if is_of_registers else MetadataLedger()
        self.codec = Codec(self.ledger.make_machine)
        #: By node id, voters first.
        self.machines: dict[NodeId, Machine] = {}
        #: Voters of the set in force: node and the disk that it was formatted with.
        self.voters: dict[NodeId, DirectoryId] = {}
        #: Every record ever committed, by offset.
        self.committed: list[Entry] = []
        #: Epoch of the leader that committed each of them.
        self.commit_epochs: list[int] = []
        #: When the last commit happened, microseconds.
        self.committed_at = 0
        #: When the newest of the committed records was proposed, microseconds.
        self.proposed_at = 0
        self._proposals: dict[tuple[int, int], int] = {}
        #: Epoch -> who led it, in which life.
        self.leaders: dict[int, tuple[NodeId, int]] = {}
        #: Highest epoch that anybody led.
        self.highest_led = -1
        #: Key -> one past the offset of the change that a read from now on must reflect.
        self.floors: dict[str, int] = {}
        #: Highest offset of a write that was told to a client; -1: none.
        self.acknowledged_offset = -1
        #: Operation ids of which a client was told that they never happen.
        self.refused: dict[str, None] = {}
        #: Why committed records may be lost: a fault beyond what Raft promises to survive.
        self.broken: str | None = None
        #: The first of them that no format can detect; None: none.
        self.lie: str | None = None
        #: Nodes that were healed, once faults are over.
        self.healed: tuple[NodeId, ...] = ()
        self.counts = dict.fromkeys(_COUNTED, 0)

    def attach(self, hosts: Sequence[Host]) -> None:
        """Say which machines there are."""
        self.machines = {host.node_id: Machine(host, self.codec, self.committed) for host in hosts}
        self.voters = {voter.node_id: voter.directory_id for voter in hosts[0].voters}

    @property
    def majority(self) -> int:
        """How many voters make one."""
        return len(self.voters) // 2 + 1

    def voting_machines(self) -> list[Machine]:
        """Those that are members of the voter set, on the disk that it names."""
        return [
            machine
            for node_id, machine in self.machines.items()
            if self.voters.get(node_id) == machine.host.directory_ids[-1]
            and not machine.host.has_forgotten
        ]

    def may_forget(self, machine: Machine) -> bool:
        """Whether what Raft promises holds even if this machine's disk loses all that it holds now.

        Raft survives crashes and a minority that is down; it does not survive a voter that forgets
        what it had flushed, for that voter may elect a leader that never had it. So true where a
        majority of voters is left whose disks no fault has harmed, and every majority of the voter
        set that the rest can form, harmed ones included, has an intact durable copy of every
        committed record. A wiped voter has a new directory id and votes no more. A disk that rots
        above its durable mark may lose records without notice and still vote, so nothing may lie
        there. Source: design, section 9.
        """
        voting = self.voting_machines()
        if machine not in voting:
            return True
        others = [voter for voter in voting if voter is not machine]
        harmed = (voter.disk_past.has_rotted() or voter.disk_past.was_restored for voter in others)
        if len(others) - sum(harmed) < self.majority:
            return False
        if machine.mark() < len(machine.read_log().entries):
            return False
        committed = len(self.committed)
        holders = sum(self.agreement(voter.read_log()) == committed for voter in others)
        return len(others) - holders < self.majority

    def is_view(self, machine: Machine, request: ClientRequest) -> bool:
        """Whether it asks what a broker has in its image, which may be behind."""
        return request.kind == "describe-topic" and machine.host.node_id not in self.voters

    def agreement(self, log: MirroredLog) -> int:
        """How many records from the start equal the committed ones."""
        entries, committed = log.entries, self.committed
        agreed, limit = log.agreed, min(len(entries), len(committed))
        while agreed < limit and entries[agreed] == committed[agreed]:
            agreed += 1
        log.agreed = agreed
        return agreed

    def proposed(self, epoch: int, base_offset: int, count: int) -> None:
        """Note that a leader appended records of its own."""
        now = self.world.now
        for offset in range(base_offset, base_offset + count):
            self._proposals.setdefault((epoch, offset), now)

    def commit(self, log: MirroredLog, end_offset: int, epoch: int) -> None:
        """Note that a leader's high watermark passed these records in its epoch."""
        first = len(self.committed)
        if end_offset <= first:
            return
        for offset, entry in enumerate(log.entries[first:end_offset], first):
            self.committed.append(entry)
            self.commit_epochs.append(epoch)
            self.proposed_at = max(self.proposed_at, self._proposals.get((entry.epoch, offset), 0))
            if entry.payload is not None:
                self.ledger.apply(offset, entry.payload)
        self.committed_at = self.world.now

    def keep_copies(self, machine: Machine, snapshot_id: SnapshotId) -> None:
        """A machine's log begins with this snapshot from now on, or may from its next life on."""
        machine.copies.take(snapshot_id, [other.copies for other in self.machines.values()])

    def raise_floor(self, key: str, end_offset: int) -> None:
        """Reads from now on must reflect what the key held after all below ``end_offset``."""
        changed_at = self.ledger.changed_at(key, end_offset)
        if changed_at > self.floors.get(key, 0):
            self.floors[key] = changed_at

    def figures(self) -> dict[str, int]:
        """Counts of what happened."""
        return {
            "commits": len(self.committed),
            "epochs": len(self.leaders),
            "highest_epoch": self.highest_led,
            **self.counts,
        }
