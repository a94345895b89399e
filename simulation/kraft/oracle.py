"""The all-seeing oracle of a simulated quorum: keeps the ghost state up and runs the invariants.

Told of everything that the nodes do. The ghost state is kept whether or not an
invariant is muted, so that muting one leaves the others whole. Must never influence a node, a disk
or a random stream: a run with all invariants muted is the same run.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from splitbrain.nodes.quorum import effects
from splitbrain.nodes.quorum.events import ConnectionClosed, Event, RequestReceived
from splitbrain.nodes.quorum.identifiers import NodeId
from splitbrain.nodes.quorum.messages import FetchRequest, VoteRequest
from splitbrain.nodes.storage.layout import QUORUM_STATE
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest
from splitbrain.nodes.wire.calls import ReceivedCall
from splitbrain.simulation.kraft.all_invariants import INVARIANTS
from splitbrain.simulation.kraft.ghost import Ghost, Machine
from splitbrain.simulation.kraft.host import Host
from splitbrain.simulation.kraft.invariants import Arrival, Invariant, MetadataInvariant
from splitbrain.simulation.kraft.invariants_clients import READS
from splitbrain.simulation.kraft.invariants_elections import cast_vote
from splitbrain.simulation.kraft.metadata.ledger import MetadataLedger
from splitbrain.simulation.kraft.mirrored_log import Entry
from splitbrain.simulation.world.world import SimulatedWorld

_Check = Callable[[Machine, Any], None]


class Oracle:
    """Sees everything that the hosts' nodes do."""

    def __init__(self, world: SimulatedWorld, *, muted: frozenset[str] = frozenset()) -> None:
        """An oracle of no machines yet; ``muted`` invariants, by id, do not watch."""
        self.ghost = Ghost(world)
        self._world = world
        is_metadata = isinstance(self.ghost.ledger, MetadataLedger)
        self.invariants = [
            kind(self.ghost)
            for kind in INVARIANTS
            if kind.id not in muted and (is_metadata or not issubclass(kind, MetadataInvariant))
        ]
        self._notes_before: dict[type, _Check] = {
            effects.AdvanceHighWatermark: self._note_high_watermark,
            effects.ReportState: self._note_report,
            effects.SendAnswer: self._note_answer,
            effects.SendRequest: self._note_request,
            effects.TruncateLog: self._note_truncation_count,
        }
        self._notes_after: dict[type, _Check] = {
            effects.AppendLeaderChange: self._note_leader_change,
            effects.AppendRecords: self._note_records,
            effects.AppendBatches: self._note_batches,
            effects.TruncateLog: self._note_truncation,
            effects.ReplaceLog: self._note_replacement,
            effects.CutLogStart: self._note_cut,
        }
        self._file_invariants()

    def attach(self, hosts: Sequence[Host]) -> None:
        """Say which machines there are, voters first."""
        self.ghost.attach(hosts)

    # Calls of disk faults.

    def may_forget(self, host: Host) -> bool:
        """Whether the promise holds even if this machine's disk loses all that it holds now."""
        return self.ghost.may_forget(self.ghost.machines[host.node_id])

    def harmed(self, host: Host, reason: str) -> None:
        """Note that a fault is about to change what this machine's disk holds, or has.

        Told before and after bytes change; not of faults that only make a node stop, or slow: those
        lose nothing that was promised. Where faults may go beyond the promise and this one does,
        nothing that follows from it is a finding any more.
        """
        ghost = self.ghost
        machine = ghost.machines[host.node_id]
        past = machine.disk_past
        past.look()
        machine.harmed()
        if host.is_up and machine.log is None:
            past.was_booting = True
        if self._world.scenario.beyond_promise and (ghost.broken is None or ghost.lie is None):
            # No format can detect an older disk, or a quorum state without a checksum.
            is_lie = past.was_restored or past.has_rotted(QUORUM_STATE)
            if ghost.broken is None and (is_lie or not self.may_forget(host)):
                ghost.broken = f"{host.name}: {reason}"
                self._file_invariants()
            if is_lie and ghost.lie is None:
                ghost.lie = f"{host.name}: {reason}"

    def healed(self, among: Sequence[NodeId]) -> None:
        """No fault from now on; these nodes are up and reach each other."""
        self.ghost.healed = tuple(among)

    def finished(self) -> None:
        """Note that the run is over.

        Raises:
            ViolationError: an invariant of the whole run does not hold.
        """
        for invariant in self._watching:
            invariant.finished()

    # Calls of hosts.

    def started(self, host: Host) -> None:
        """Note that a life begins, recovered."""
        machine = self.ghost.machines[host.node_id]
        self.ghost.counts["lives"] += 1
        machine.started()
        for invariant in self._watching:
            invariant.started(machine)

    def ended(self, host: Host) -> None:
        """Note that a life is over, or could not begin; the disk is as the end left it."""
        machine = self.ghost.machines[host.node_id]
        machine.ended()
        newest = self.ghost.codec.snapshots.newest_whole(host.disk, host.folder)
        if newest is not None:
            self.ghost.keep_copies(machine, newest)
        for invariant in self._watching:
            invariant.ended(machine)
        machine.judged()

    def taking(self, host: Host, event: Event) -> None:
        """Note that the node is about to take an event."""
        looks = self._took.get(type(event))
        if looks is not None:
            machine = self.ghost.machines[host.node_id]
            for look in looks:
                look(machine, event)

    def before(self, host: Host, effect: effects.Effect) -> None:
        """Note that an effect is about to be performed."""
        looks = self._before.get(type(effect))
        if looks is not None:
            machine = self.ghost.machines[host.node_id]
            for look in looks:
                look(machine, effect)

    def after(self, host: Host, effect: effects.Effect) -> None:
        """Note that an effect was performed."""
        looks = self._after.get(type(effect))
        if looks is not None:
            machine = self.ghost.machines[host.node_id]
            for look in looks:
                look(machine, effect)

    def asked(self, host: Host, request: ClientRequest) -> object:
        """A client's request reached the node; which change of its key a read must reflect."""
        return self.ghost.floors.get(request.key, 0)

    def replied(
        self, host: Host, request: ClientRequest, answer: ClientAnswer, token: object
    ) -> None:
        """Note that the node answered it."""
        if request.kind == "status":
            return
        assert isinstance(token, int)
        ghost = self.ghost
        machine = ghost.machines[host.node_id]
        for replied in self._replied:
            replied(machine, request, answer, token)
        if answer.outcome != "ok":
            if answer.definite:
                ghost.refused[request.operation] = None
        elif answer.offset is not None:
            if request.kind in READS:
                ghost.counts["reads"] += 1
                if not ghost.is_view(machine, request):
                    ghost.raise_floor(request.key, answer.offset)
            else:
                ghost.counts["acknowledged"] += 1
                ghost.raise_floor(request.key, answer.offset + 1)
                ghost.acknowledged_offset = max(ghost.acknowledged_offset, answer.offset)

    def called(self, host: Host, call: ReceivedCall) -> object:
        """Another node's call reached the node; how far the node was then, and when it was."""
        machine = self.ghost.machines[host.node_id]
        for invariant in self._called:
            invariant(machine, call.message)
        return Arrival(host.clock.now(), host.node.parts.applier.machine.end_offset)

    def answered(
        self, host: Host, call: ReceivedCall, answer: msgspec.Struct, token: object
    ) -> None:
        """Note that the node answered it."""
        assert isinstance(token, Arrival)
        machine = self.ghost.machines[host.node_id]
        for answered in self._answered:
            answered(machine, call.message, answer, token)

    def calls(self, host: Host, message: msgspec.Struct) -> None:
        """Note that the node is about to call a controller."""
        machine = self.ghost.machines[host.node_id]
        for calls in self._calls:
            calls(machine, message)

    # How the ghost state is kept.

    def _note_high_watermark(self, machine: Machine, effect: effects.AdvanceHighWatermark) -> None:
        machine.high_watermark = effect.offset
        replica = machine.host.node.replica
        if replica.role == "leader":
            log = machine.log
            assert log is not None
            self.ghost.commit(log, effect.offset, replica.epoch)
            if log.is_durable(machine.host.disk, machine.promised, effect.offset):
                machine.promised = max(machine.promised, effect.offset)

    def _note_received(self, machine: Machine, event: RequestReceived) -> None:
        if isinstance(event.request, VoteRequest):
            machine.asked[event.connection] = event.request
            machine.when_asked[event.connection] = machine.last_of_log()

    def _note_closed(self, machine: Machine, event: ConnectionClosed) -> None:
        machine.asked.pop(event.connection, None)

    def _note_report(self, machine: Machine, effect: effects.ReportState) -> None:
        if effect.kind == "role" and effect.role == "leader":
            ghost = self.ghost
            if effect.epoch not in ghost.leaders:
                ghost.counts["elections"] += 1
            ghost.leaders[effect.epoch] = (machine.host.node_id, machine.host.incarnation)
            ghost.highest_led = max(ghost.highest_led, effect.epoch)

    def _note_answer(self, machine: Machine, effect: effects.SendAnswer) -> None:
        if cast_vote(machine, effect) is not None:
            self.ghost.counts["votes"] += 1
        machine.asked.pop(effect.connection, None)
        self._note_state(machine)

    def _note_request(self, machine: Machine, effect: effects.SendRequest) -> None:
        self._note_state(machine)
        if cast_vote(machine, effect) is not None:
            self.ghost.counts["votes"] += 1
        elif isinstance(effect.request, FetchRequest):
            machine.promised = max(machine.promised, effect.request.fetch_offset)

    def _note_state(self, machine: Machine) -> None:
        state = machine.quorum_state()
        if state is not None:
            machine.said = state

    def _note_truncation_count(self, machine: Machine, effect: effects.TruncateLog) -> None:
        self.ghost.counts["truncations"] += 1

    def _note_leader_change(self, machine: Machine, effect: effects.AppendLeaderChange) -> None:
        self._note_own(machine, effect.base_offset, [Entry(effect.epoch, None)])

    def _note_records(self, machine: Machine, effect: effects.AppendRecords) -> None:
        epoch = int(effect.epoch)
        entries = [Entry(epoch, payload) for payload in effect.payloads]
        self._note_own(machine, effect.base_offset, entries)

    def _note_own(self, machine: Machine, base_offset: int, entries: list[Entry]) -> None:
        assert machine.log is not None
        self.ghost.proposed(entries[0].epoch, base_offset, len(entries))
        position = machine.host.node.parts.disk.end_position
        machine.log.append(entries, position.segment, position.byte)

    def _note_batches(self, machine: Machine, effect: effects.AppendBatches) -> None:
        assert machine.log is not None
        position = machine.host.node.parts.disk.end_position
        machine.log.append_raw(effect.records, position.segment, position.byte)

    def _note_truncation(self, machine: Machine, effect: effects.TruncateLog) -> None:
        assert machine.log is not None
        machine.log.truncate(effect.end_offset)
        machine.promised = min(machine.promised, effect.end_offset)

    def _note_replacement(self, machine: Machine, effect: effects.ReplaceLog) -> None:
        assert machine.log is not None
        machine.log.replace(effect.snapshot_id, self.ghost.committed)
        machine.promised = min(machine.promised, effect.snapshot_id.end_offset)
        machine.high_watermark = max(machine.high_watermark, effect.snapshot_id.end_offset)
        self.ghost.keep_copies(machine, effect.snapshot_id)
        self.ghost.counts["installed"] += 1

    def _note_cut(self, machine: Machine, effect: effects.CutLogStart) -> None:
        assert machine.log is not None
        newest = machine.host.node.replica.newest_snapshot
        assert newest is not None
        machine.log.cut_start(effect.snapshot_id, newest)
        self.ghost.keep_copies(machine, effect.snapshot_id)
        self.ghost.counts["cuts"] += 1

    def _file_invariants(self) -> None:
        """Sort the invariants that watch by what they watch."""
        broken = self.ghost.broken is not None
        self._watching = [each for each in self.invariants if not (broken and each.needs_promise)]
        self._replied = [
            each.replied for each in self._watching if type(each).replied is not Invariant.replied
        ]
        self._called = _kept([each.called for each in self._watching], Invariant.called)
        self._answered = _kept([each.answered for each in self._watching], Invariant.answered)
        self._calls = _kept([each.calls for each in self._watching], Invariant.calls)
        # Invariants see the ghost state as of the same moment as the machine.
        self._took: dict[type, list[_Check]] = {
            RequestReceived: [self._note_received],
            ConnectionClosed: [self._note_closed],
        }
        self._before: dict[type, list[_Check]] = {}
        self._after = {kind: [note] for kind, note in self._notes_after.items()}
        for invariant in self._watching:
            for kind in invariant.events:
                self._took.setdefault(kind, []).append(invariant.took)
            for kind in invariant.before_effects:
                self._before.setdefault(kind, []).append(invariant.before)
            for kind in invariant.after_effects:
                self._after.setdefault(kind, []).append(invariant.after)
        for kind, note in self._notes_before.items():
            self._before.setdefault(kind, []).append(note)


def _kept(moments: Sequence[Any], nothing: object) -> list[Any]:
    """Those that an invariant says something at."""
    return [moment for moment in moments if moment.__func__ is not nothing]
