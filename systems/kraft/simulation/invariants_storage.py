"""What must hold of disks: promises outlive the process, and healed disks are equal.

Must never ask more of a disk that a fault has harmed than its formats can detect.
"""
# ruff: noqa: D102 - the moments are documented once, in Invariant

from nodes.storage.layout import EPOCH_CHECKPOINT, QUORUM_STATE, SEGMENT_SUFFIX
from systems.kraft.simulation.ghost import Machine
from systems.kraft.simulation.invariants import Invariant
from systems.kraft.simulation.shadow import segments_of
from systems.kraft.simulation.wording import state_in_words


class PromisedIsKept(Invariant):
    """A life begins with everything that the node ever said to be on this disk.

    Records that it fetched behind or counted as a leader, unless it truncated them; its epoch and
    its vote. Where flushed bytes have rotted it begins with all of them too, or not at all; what
    lies above the durable mark cannot be told from a torn tail, and may be gone then.
    """

    id = "INV-15"
    needs_promise = False

    def started(self, machine: Machine) -> None:
        if machine.disk_past.was_restored or machine.disk_past.rotted_while_booting:
            return
        self._check_log(machine)
        self._check_state(machine)

    def _check_log(self, machine: Machine) -> None:
        log, node_id = machine.log, machine.host.node_id
        assert log is not None
        end = machine.host.node.replica.log_end_offset
        if end != len(log.entries):
            raise self.violated(
                f"n{node_id} begins with a log that ends at {end}, its disk keeps"
                f" {len(log.entries)} records",
                machine,
            )
        rotted = machine.disk_past.has_rotted(SEGMENT_SUFFIX, EPOCH_CHECKPOINT)
        promised = machine.promised_below_mark if rotted else machine.promised
        if log.entries[:promised] != machine.left[:promised]:
            kept = next(
                offset
                for offset in range(promised)
                if offset >= end or log.entries[offset] != machine.left[offset]
            )
            raise self.violated(
                f"n{node_id} begins without what it had at {kept}, and had said to have on disk up"
                f" to {promised}",
                machine,
            )

    def _check_state(self, machine: Machine) -> None:
        if machine.disk_past.has_rotted(QUORUM_STATE):
            return
        said, state = machine.said, machine.quorum_state()
        if (
            state is None
            or state.epoch < said.epoch
            or (state.epoch == said.epoch and said.voted_id not in (None, state.voted_id))
        ):
            raise self.violated(
                f"n{machine.host.node_id} begins with {state_in_words(state)} on disk, and had"
                f" spoken with {state_in_words(said)}",
                machine,
            )


class EqualBytes(Invariant):
    """Healed logs are equal byte for byte as far as all of them know what is committed."""

    id = "INV-19"

    def finished(self) -> None:
        machines = [self.ghost.machines[node_id] for node_id in self.ghost.healed]
        logs = [
            (machine, _committed_bytes(machine))
            for machine in machines
            if machine.log is not None and not machine.disk_past.has_rotted(SEGMENT_SUFFIX)
        ]
        if not logs:
            return
        # Who knows most is compared with all others, so that no byte known to two is left out.
        most, longest = max(logs, key=lambda log: len(log[1]))
        for machine, content in logs:
            if not longest.startswith(content):
                position = next(
                    index for index, byte in enumerate(content) if byte != longest[index]
                )
                raise self.violated(
                    f"the logs of {machine.host.name} and {most.host.name} differ at byte"
                    f" {position}",
                    machine,
                )


def _committed_bytes(machine: Machine) -> bytes:
    assert machine.log is not None
    end = machine.log.position_of(max(machine.high_watermark, 0))
    folder = machine.log.folder
    return b"".join(content for _, _, content in segments_of(machine.host.disk, folder))[:end]
