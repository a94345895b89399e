"""Has a broker that leads partitions propose that every replica is in sync, one request at a time.

The log tells a proposal's outcome. Source: Kafka's AlterPartitionManager.
"""

import msgspec

from splitbrain.nodes.broker.isr_proposals import propose_isrs
from splitbrain.nodes.broker.lifecycle import Lifecycle
from splitbrain.nodes.metadata.image import TopicImage
from splitbrain.nodes.quorum.identifiers import Microseconds, NodeId
from splitbrain.nodes.quorum.replica import Replica
from splitbrain.nodes.server.host.surroundings import CallPeer, TimerHandle, Timers


class IsrProposer:
    """The proposals of one life."""

    def __init__(
        self,
        broker_id: NodeId,
        lifecycle: Lifecycle,
        replica: Replica,
        timers: Timers,
        call: CallPeer,
        pause_us: Microseconds,
    ) -> None:
        """``pause_us``: between a proposal's answer and the next one."""
        self._broker_id = broker_id
        self._lifecycle = lifecycle
        self._replica = replica
        self._timers = timers
        self._call: CallPeer | None = call
        self._pause_us = pause_us
        self._is_waiting = False
        self._timer: TimerHandle | None = None
        #: Topics, as of the last look, of which nothing is to be proposed.
        self._whole: dict[str, TopicImage] = {}

    def look(self) -> None:
        """Propose what is to be proposed; to be called when image, fence or leader changed."""
        leader_id = self._replica.leader_id
        if self._call is None or self._is_waiting or self._timer is not None or leader_id is None:
            return
        lifecycle = self._lifecycle
        if lifecycle.is_fenced:
            return
        request = propose_isrs(
            lifecycle.image, self._broker_id, lifecycle.broker_epoch, self._whole
        )
        if request is not None:
            self._is_waiting = True
            self._call(NodeId(leader_id), request, self._answered)

    def stop(self) -> None:
        """Propose no more."""
        self._call = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _answered(self, _: msgspec.Struct | None) -> None:
        self._is_waiting = False
        if self._call is not None:
            self._timer = self._timers.call_later(self._pause_us, self._again)

    def _again(self) -> None:
        self._timer = None
        self.look()
