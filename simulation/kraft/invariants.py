"""The form of an invariant of the simulated quorum, and the moments at which it may look.

One small class per invariant, with its id in ``docs/invariants.md``: of elections in
``invariants_elections``, of logs in ``invariants_logs``, of what clients are told in
``invariants_clients``, of disks in ``invariants_storage``, of metadata in ``invariants_metadata``,
of brokers in ``invariants_brokers``, ``invariants_sessions`` and ``invariants_leavers``. None looks
at a role's private parts, so that each is true of any correct implementation. Must never change
anything but its own notes.
"""

from typing import Any, ClassVar, NamedTuple

from splitbrain.contracts.scenario import ViolationError
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest
from splitbrain.simulation.kraft.ghost import Ghost, Machine
from splitbrain.simulation.kraft.metadata.ledger import MetadataLedger


class Arrival(NamedTuple):
    """When a call reached a controller."""

    #: By the controller's own clock, microseconds.
    time_us: int
    #: One past the last offset that the controller had applied.
    applied: int


class Invariant:
    """Watches some effects, before or after they are performed, and other moments."""

    id: ClassVar[str]
    before_effects: ClassVar[tuple[type, ...]] = ()
    after_effects: ClassVar[tuple[type, ...]] = ()
    #: False where it must hold even after faults beyond what Raft promises to survive.
    needs_promise: ClassVar[bool] = True
    #: Events of a node that ``took`` is told of.
    events: ClassVar[tuple[type, ...]] = ()

    def __init__(self, ghost: Ghost) -> None:
        self.ghost = ghost

    def violated(
        self, problem: str, machine: Machine | None = None, *, kind: str | None = None
    ) -> ViolationError:
        """Return the error to raise; ``kind`` where the id alone does not say what went wrong."""
        name = None if machine is None else machine.host.name
        return ViolationError(self.id, problem, name, kind=kind)

    def started(self, machine: Machine) -> None:
        """Note that a life begins."""

    def ended(self, machine: Machine) -> None:
        """Note that a life is over."""

    def took(self, machine: Machine, event: Any) -> None:
        """Note that a node is about to take one of ``events``."""

    def before(self, machine: Machine, effect: Any) -> None:
        """One of ``before_effects`` is about to be performed."""

    def after(self, machine: Machine, effect: Any) -> None:
        """One of ``after_effects`` was performed."""

    def replied(
        self, machine: Machine, request: ClientRequest, answer: ClientAnswer, floor: int
    ) -> None:
        """Note that a client was answered; a read must reflect its key as of ``floor``."""

    def calls(self, machine: Machine, message: Any) -> None:
        """Note that a broker or a controller is about to ask a controller something."""

    def called(self, machine: Machine, message: Any) -> None:
        """Note that a controller is asked something by a broker."""

    def answered(self, machine: Machine, message: Any, answer: Any, arrival: "Arrival") -> None:
        """Note that it was answered."""

    def finished(self) -> None:
        """Note that the run is over."""


class MetadataInvariant(Invariant):
    """Watches worlds of metadata alone."""

    def __init__(self, ghost: Ghost) -> None:
        super().__init__(ghost)
        assert isinstance(ghost.ledger, MetadataLedger)
        self.ledger = ghost.ledger
