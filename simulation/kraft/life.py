"""One process of a simulated machine: the node and what is its own around it.

Must never begin a life, nor end one in disorder: that is the machine's.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.nodes.quorum.effects import Effect
from splitbrain.nodes.quorum.events import Event
from splitbrain.nodes.server.host.node import Node, NodeParts
from splitbrain.nodes.server.host.surroundings import Surroundings
from splitbrain.nodes.server.start.assembling import Life as BegunLife
from splitbrain.nodes.server.start.assembling import NodeMaterials, assemble
from splitbrain.nodes.transport.kafka_codec import KafkaCodec
from splitbrain.simulation.kraft.calls import HeldCalls, SimulatedCalls
from splitbrain.simulation.kraft.disk_jobs import SimulatedDiskJobs
from splitbrain.simulation.kraft.peers import SimulatedPeers
from splitbrain.simulation.kraft.timers import LifeTimers
from splitbrain.simulation.world.network import SimulatedNetwork

if TYPE_CHECKING:
    from splitbrain.simulation.kraft.host import Host

_ENCODER: Final = msgspec.msgpack.Encoder()


class WatchedNode(Node):
    """The real node, with the oracle looking on: what it takes and does goes into the trace."""

    def __init__(self, parts: NodeParts, surroundings: Surroundings, host: "Host") -> None:
        super().__init__(parts, surroundings)
        self._host = host

    def take(self, event: Event) -> Sequence[Effect]:
        """Absorb the event into the trace, and take it."""
        host = self._host
        host.world.absorb(_ENCODER.encode((host.node_id, type(event).__name__, event)))
        host.oracle.taking(host, event)
        if host.world.is_watched:
            host.happen(event, self.replica)
        effects = super().take(event)
        self.replica.validate()
        return effects

    def perform(self, effect: Effect) -> None:
        """Perform it between the looks of the oracle; a fault may end the life here."""
        host = self._host
        host.oracle.before(host, effect)
        super().perform(effect)
        host.oracle.after(host, effect)
        if host.world.is_watched:
            host.happen(effect, self.replica)


class Life(NamedTuple):
    """One process."""

    node: Node
    peers: SimulatedPeers
    jobs: SimulatedDiskJobs
    #: None where nothing is asked but what the quorum's links carry.
    calls: SimulatedCalls | None

    def wind_up(
        self, network: SimulatedNetwork, name: NodeName, closed: Callable[[], None]
    ) -> None:
        """Carry out the end of a node, in the order of ``nodes.server.machine.assembly``.

        Clients that wait are answered, all connections closed, and ``closed`` is called when the
        disk has done what it was given.
        """
        self.node.service.stop()
        network.hang_up(name)
        self.peers.close()
        if self.calls is not None:
            self.calls.close()

        def close() -> None:
            self.node.close()
            closed()

        self.jobs.finish(close)


def make_life(
    host: "Host",
    materials: NodeMaterials,
    begun: BegunLife,
    enter: Callable[[Callable[[], None]], None],
    *,
    ended: Callable[[int, str], None],
    is_alone: bool,
) -> Life:
    """Make the node of a life that has begun, and what is its own around it.

    ``is_alone``: nothing is asked but what the quorum's links carry.

    Raises:
        StorageError, StorageMismatch, OSError: the disk refused, or is not what the node can live
            on.
    """
    world = host.world
    places = {
        voter.node_id: f"n{voter.node_id}" for voter in host.voters if voter.node_id != host.node_id
    }
    timers = LifeTimers(world, host.clock, enter)
    calls = None
    if not is_alone:
        held = HeldCalls(world, host.node_id)
        calls = SimulatedCalls(
            world, host.node_id, places, enter, timers, called=host.calls, wait_us=held.wait_us
        )
    peers = SimulatedPeers(world, host.name, places, enter, host)
    jobs = SimulatedDiskJobs(world, host.disk, host.disk_speed, enter, host.name)
    surroundings = Surroundings(
        timers=timers,
        disk_jobs=jobs,
        peer_links=peers,
        peer_answers=peers,
        reply_to_call=peers.reply,
        call_peer=None if calls is None else calls.call,
        state_events=host.state_events,
        log_lines=host.log_lines,
        ended=ended,
        defect=_raise,
    )
    node = assemble(
        materials, begun, surroundings, lambda parts, given: WatchedNode(parts, given, host)
    )
    codec = KafkaCodec(host.node_id, host.voters, node.service.versions)
    peers.attach(node, codec)
    return Life(node, peers, jobs, calls)


def _raise(error: Exception) -> None:
    """Note that a defect of the node is a finding: the world ends with it."""
    raise error
