"""All simulated machines of one world, and what may be done to them."""

from collections.abc import Sequence
from functools import cache
from typing import Final

from splitbrain.contracts.committed import CommittedLog, CommittedRecord
from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import NodeCrashed, Scenario
from splitbrain.contracts.state_event import StateEvent
from splitbrain.contracts.system import LeaderView, Route
from splitbrain.nodes.metadata.errors import MetadataError
from splitbrain.nodes.quorum.errors import UnreadableRecordError
from splitbrain.nodes.quorum.identifiers import DirectoryId, NodeId
from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.quorum.voters import ReplicaKey
from splitbrain.nodes.server.start.quorum_settings import quorum_settings
from splitbrain.nodes.storage.errors import StorageError
from splitbrain.nodes.storage.reading import LoggedRecord, log_start, read_committed
from splitbrain.simulation.kraft.client import SimulatedKraftClient
from splitbrain.simulation.kraft.copies import all_below
from splitbrain.simulation.kraft.disk_faults import DiskFaults
from splitbrain.simulation.kraft.host import CLUSTER_ID, Host
from splitbrain.simulation.kraft.layers import layer_maker, quorum_s_part, state_machine_of
from splitbrain.simulation.kraft.oracle import Oracle
from splitbrain.simulation.world.streams import DrawnStream
from splitbrain.simulation.world.world import SimulatedWorld
from splitbrain.systems.kraft.committed_log import neutral, neutral_metadata

_PEER_PORT: Final = 9193


class KraftCluster:
    """Implements ``contracts.simulation.SimulatedCluster``."""

    def __init__(self, world: SimulatedWorld, muted: frozenset[str]) -> None:
        """Machines with formatted disks and no process.

        Raises:
            UsageError: a setting of the scenario does not exist.
        """
        scenario = world.scenario
        try:
            settings = quorum_settings(quorum_s_part(scenario))
            numbers = range(1, scenario.nodes + scenario.observers + 1)
            layers = [layer_maker(world, NodeId(number), CLUSTER_ID) for number in numbers]
        except ValueError as error:
            raise UsageError(str(error), "Correct the setting") from error
        self._world = world
        voters = tuple(
            Voter(NodeId(number), directory_of(number), f"n{number}", _PEER_PORT)
            for number in range(1, scenario.nodes + 1)
        )
        self._oracle = Oracle(world, muted=muted)
        keys = [ReplicaKey(NodeId(number), first_directory(scenario, number)) for number in numbers]
        self._hosts = {
            NodeName(f"n{key.node_id}"): Host(world, self._oracle, key, voters, settings, layer)
            for key, layer in zip(keys, layers, strict=True)
        }
        self._oracle.attach(tuple(self._hosts.values()))
        self._voter_count = scenario.nodes
        #: Voters first, then observers.
        self.nodes: tuple[NodeName, ...] = tuple(self._hosts)
        is_metadata = state_machine_of(scenario) == "metadata"
        #: Brokers.
        self.observers: tuple[NodeName, ...] = self.nodes[scenario.nodes :] if is_metadata else ()
        self._disks = {
            name: DiskFaults(host, self._oracle.harmed, DrawnStream)
            for name, host in self._hosts.items()
        }
        self._client_count = 0
        #: Nodes hold the same records: each is told once.
        self._neutral_record = cache(neutral)

    @property
    def hosts(self) -> dict[NodeName, Host]:
        """The machines; for tests and debuggers."""
        return self._hosts

    @property
    def oracle(self) -> Oracle:
        """Return the watching oracle; for tests and debuggers."""
        return self._oracle

    def start(self, node: NodeName) -> None:
        """Start a node that is down."""
        self._hosts[node].start()

    def kill(self, node: NodeName, draw: int) -> None:
        """End its process; raises NodeCrashed where it happens in its own step."""
        self._end([node], draw, lose_unsynced=False)

    def terminate(self, node: NodeName, draw: int) -> None:
        """Ask its process to end."""
        self._hosts[node].terminate(draw)

    def power_off(self, nodes: Sequence[NodeName], draw: int) -> str:
        """End their processes and lose what they had not synced."""
        return self._end(nodes, draw, lose_unsynced=True)

    def pause(self, node: NodeName) -> None:
        """Freeze it."""
        self._hosts[node].pause()

    def resume(self, node: NodeName) -> None:
        """Undo pause."""
        self._hosts[node].resume()

    def jump_clock(self, node: NodeName, delta_us: int) -> None:
        """Move its wall clock."""
        self._hosts[node].clock.jump(delta_us)

    def is_up(self, node: NodeName) -> bool:
        """Whether its process exists."""
        return self._hosts[node].is_up

    def is_paused(self, node: NodeName) -> bool:
        """Whether it is frozen."""
        return self._hosts[node].is_paused

    def ended(self, node: NodeName) -> str | None:
        """Why it ended by itself."""
        return self._hosts[node].ended

    def leader(self) -> LeaderView:
        """Return the running leader of the highest epoch."""
        best: tuple[int, NodeName] | None = None
        for name, host in self._hosts.items():
            if host.serves and host.node.replica.role == "leader":
                epoch = int(host.node.replica.epoch)
                if best is None or epoch > best[0]:
                    best = (epoch, name)
        return LeaderView(None, None) if best is None else LeaderView(best[1], best[0])

    def disk(self, node: NodeName) -> DiskFaults:
        """Its disk."""
        return self._disks[node]

    def may_forget(self, node: NodeName) -> bool:
        """Whether the promise holds even if this node forgets everything."""
        return self._oracle.may_forget(self._hosts[node])

    def open_client(self, slot: int, route: Route) -> SimulatedKraftClient:
        """Return a fresh client."""
        self._client_count += 1
        voters = self.nodes[: self._voter_count]
        name = f"c{slot}.{self._client_count}"
        return SimulatedKraftClient(self._world, f"c{slot}", name, voters, route)

    def committed_past(self, time_us: int) -> bool:
        """Whether something was committed that was proposed after this time."""
        return self._oracle.ghost.proposed_at > time_us

    def unlike(self, among: Sequence[NodeName]) -> str | None:
        """Why these nodes do not hold, and have not applied, the same."""
        seen: dict[tuple[int, int, int, str], NodeName] = {}
        for name in among:
            host = self._hosts[name]
            if not host.serves:
                return f"{name} is not at work ({host.ended or 'down'})"
            state = host.node.state()
            seen.setdefault(
                (state.high_watermark, state.log_end_offset, state.applied_offset, state.digest),
                name,
            )
        if len(seen) <= 1:
            return None
        return "; ".join(
            f"{name} has committed {known} and applied {applied} of {end}, state {digest[:8]}"
            for (known, end, applied, digest), name in seen.items()
        )

    def healed(self, among: Sequence[NodeName]) -> None:
        """No fault from now on."""
        self._oracle.healed([self._hosts[name].node_id for name in among])

    def finish(self) -> None:
        """Note that the run is over; raises ViolationError."""
        self._oracle.finished()

    def epoch(self, node: NodeName) -> int:
        """Epoch that it last said to be in."""
        events = self._hosts[node].state_events.events
        return events[-1].epoch if events else 0

    def state_events(self, node: NodeName) -> tuple[StateEvent, ...]:
        """Return the node's state events and log."""
        return tuple(self._hosts[node].state_events.events)

    def committed_log(self, node: NodeName) -> CommittedLog | None:
        """Return its disk's share of its committed records, and what came before its log.

        Of what a snapshot stands for the records are copies, or another machine's: ``copies``.
        """
        host = self._hosts[node]
        end = max(
            (
                event.offset
                for event in host.state_events.events
                if event.kind in ("high-watermark", "commit") and event.offset is not None
            ),
            default=-1,
        )
        if end < 0:
            return None
        try:
            logged = read_committed(host.folder, end, filesystem=host.disk)
            logged = list(logged)
            begins = log_start(host.folder, filesystem=host.disk)
        except (StorageError, OSError, HarnessError):
            return None
        machines = self._oracle.ghost.machines
        # Its snapshots keep no single records of what they stand for; INV-28 holds both equal.
        sources = sorted(machines.values(), key=lambda machine: machine.host is not host)
        below = all_below(begins, (machine.copies for machine in sources))
        start = min(begins.end_offset, end) if below is None else 0
        if below is not None:
            logged = [*below[:end], *logged]
        try:
            records = self._neutral(logged)
        except (HarnessError, UnreadableRecordError, MetadataError):
            return None
        last = records[-1].offset + 1 if records else start
        return CommittedLog(node=node, start_offset=start, end_offset=last, records=records)

    def _neutral(self, logged: Sequence[LoggedRecord]) -> tuple[CommittedRecord, ...]:
        """Records as all systems tell them; a topic whose creation is not there has no name."""
        if state_machine_of(self._world.scenario) == "metadata":
            return neutral_metadata(logged, {})
        return tuple(map(self._neutral_record, logged))

    def lie(self) -> str | None:
        """Return the first fault by which a disk told its node what no format can detect."""
        return self._oracle.ghost.lie

    def figures(self) -> dict[str, int]:
        """Counts of what happened."""
        return self._oracle.ghost.figures()

    def _end(self, nodes: Sequence[NodeName], draw: int, *, lose_unsynced: bool) -> str:
        hosts = [self._hosts[name] for name in nodes]
        own = any(host.is_up and host.is_running for host in hosts)
        reasons = [
            f"{host.name}: {host.end_life(lose_unsynced=lose_unsynced, draw=draw + place)}"
            for place, host in enumerate(hosts)
        ]
        if own:
            raise NodeCrashed("; ".join(reasons))
        return "; ".join(reasons)


def directory_of(number: int) -> DirectoryId:
    """Directory id of a machine's first disk."""
    return DirectoryId(f"{number:032x}")


def first_directory(scenario: Scenario, number: int) -> DirectoryId:
    """As ``directory_of``; but a broker may have none of the low ids, which Kafka reserves."""
    if number > scenario.nodes and state_machine_of(scenario) == "metadata":
        return DirectoryId(f"1{number:031x}")
    return directory_of(number)
