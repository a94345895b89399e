"""Invariants of all answers to clients, and of the state machines behind them.

Looked at where a request reaches a node and where the node answers, so that what the network does
in between cannot hide a mistake; the order of these moments is the order that linearizability
speaks of. Must never demand more of an answer than linearizability does.
"""
# ruff: noqa: D102 - the moments are documented once, in Invariant

from typing import Any

from splitbrain.nodes.quorum.effects import AdvanceHighWatermark
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest
from splitbrain.simulation.kraft.ghost import Ghost, Machine
from splitbrain.simulation.kraft.invariants import Invariant
from splitbrain.simulation.kraft.ledger import encoded
from splitbrain.simulation.kraft.wording import value_in_words

#: Requests that change nothing, and those that do, in the words of the client protocol.
READS = ("read", "read-set", "describe-topic")
_WRITES = ("write", "cas", "add", "create-topic", "delete-topic")
#: Records between two looks at a leader's whole state.
_DIGEST_INTERVAL = 16


class LinearizableReads(Invariant):
    """A read reflects all of its key that was told before the read began, and nothing uncommitted.

    Told: every write that was acknowledged, and every read that was answered.
    """

    id = "INV-10"

    def replied(
        self, machine: Machine, request: ClientRequest, answer: ClientAnswer, floor: int
    ) -> None:
        if request.kind not in READS or answer.outcome != "ok" or answer.offset is None:
            return
        if answer.offset < floor and not self.ghost.is_view(machine, request):
            raise self.violated(
                f"n{machine.host.node_id} reads {request.key} as of offset {answer.offset},"
                f" though its change at {floor - 1} was known before the read began",
                machine,
            )
        if answer.offset > len(self.ghost.committed):
            raise self.violated(
                f"n{machine.host.node_id} reads {request.key} as of offset {answer.offset}, only"
                f" {len(self.ghost.committed)} records are committed",
                machine,
            )


class AcknowledgedStays(Invariant):
    """A write told to a client is committed then, and in every healed log at the end."""

    id = "INV-12"

    def replied(
        self, machine: Machine, request: ClientRequest, answer: ClientAnswer, floor: int
    ) -> None:
        if request.kind not in _WRITES or answer.outcome != "ok" or answer.offset is None:
            return
        ghost, offset = self.ghost, answer.offset
        payload = ghost.committed[offset].payload if offset < len(ghost.committed) else None
        if payload is None or not ghost.ledger.is_of(request, offset, payload):
            raise self.violated(
                f"n{machine.host.node_id} acknowledges {request.operation} at {offset}, where it"
                " is not committed",
                machine,
            )

    def finished(self) -> None:
        ghost = self.ghost
        for node_id in ghost.healed:
            machine = ghost.machines[node_id]
            if machine.log is None:
                continue
            agreed = ghost.agreement(machine.log)
            if agreed <= ghost.acknowledged_offset:
                raise self.violated(
                    f"n{node_id} does not hold the committed record at {agreed} in the end; writes"
                    f" up to {ghost.acknowledged_offset} were acknowledged",
                    machine,
                )


class AnswersFollowTheLog(Invariant):
    """Every answer is what the committed records below its offset make of the request."""

    id = "INV-17"

    def replied(
        self, machine: Machine, request: ClientRequest, answer: ClientAnswer, floor: int
    ) -> None:
        if answer.outcome != "ok":
            return
        ledger = self.ghost.ledger
        if answer.offset is None and ledger.needs_no_offset(request, answer):
            return
        if answer.offset is None:
            raise self.violated(
                f"n{machine.host.node_id} answers {request.kind} of {request.key} without saying"
                " where in the log",
                machine,
            )
        expected = ledger.answer(request, answer.offset)
        if expected is not None and encoded(answer.result) != expected:
            raise self.violated(
                f"n{machine.host.node_id} answers {request.kind} of {request.key} at offset"
                f" {answer.offset} with {value_in_words(answer.result)}, which is not what the log"
                " gives",
                machine,
            )


class EqualStates(Invariant):
    """State machines that have applied the same records are equal, and as these records say."""

    id = "INV-18"
    after_effects = (AdvanceHighWatermark,)

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        #: Offset -> digest, and who had it.
        self._digests: dict[int, tuple[str, str]] = {}
        self._latest = 0

    def after(self, machine: Machine, effect: Any) -> None:
        applied = machine.host.node.parts.applier.machine.end_offset
        if applied in self._digests or applied >= self._latest + _DIGEST_INTERVAL:
            self._latest = max(self._latest, applied)
            self._compare(machine)

    def finished(self) -> None:
        for machine in self.ghost.machines.values():
            if machine.log is not None:
                self._compare(machine)

    def _compare(self, machine: Machine) -> None:
        state = machine.host.node.parts.applier.machine
        mine = (state.digest(), str(machine.host.name))
        if state.end_offset not in self._digests:
            differs = self.ghost.ledger.difference(state, state.end_offset)
            if differs is not None:
                raise self.violated(
                    f"{mine[1]} has applied everything below {state.end_offset} and has {differs},"
                    " and the log says otherwise",
                    machine,
                )
        first = self._digests.setdefault(state.end_offset, mine)
        if first[0] != mine[0]:
            raise self.violated(
                f"{mine[1]} and {first[1]} have applied everything below {state.end_offset} and"
                " differ",
                machine,
            )


class RefusedNeverHappens(Invariant):
    """A write of which a client was told that it did not and will not happen is never committed."""

    id = "INV-25"
    after_effects = (AdvanceHighWatermark,)

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        self._looked_at = 0

    def after(self, machine: Machine, effect: AdvanceHighWatermark) -> None:
        ghost = self.ghost
        for offset in range(self._looked_at, len(ghost.committed)):
            operation = ghost.ledger.operation_at.get(offset)
            if operation in ghost.refused:
                raise self.violated(
                    f"{operation} is committed at {offset}, though a client was told that it never"
                    " happens",
                    machine,
                )
        self._looked_at = len(ghost.committed)

    def replied(
        self, machine: Machine, request: ClientRequest, answer: ClientAnswer, floor: int
    ) -> None:
        if request.kind in _WRITES and answer.definite and answer.outcome != "ok":
            offset = self.ghost.ledger.operations.get(request.operation)
            if offset is not None:
                raise self.violated(
                    f"n{machine.host.node_id} tells that {request.operation} never happens, which"
                    f" is committed at {offset}",
                    machine,
                )
