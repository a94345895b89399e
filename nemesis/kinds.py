"""What a fault kind is, and the registry of those that exist.

A kind turns a resolved target into an ``ActualFault``, tells the runtime to inject and to heal it,
and says what must be seen from outside in between. Healing is part of the fault. Injecting and
healing may be repeated safely, because the runtime's acts are idempotent.
"""

from typing import Final, Protocol

from contracts.errors import UsageError
from contracts.fault import ActualFault, ScheduledFault
from contracts.names import NodeName
from contracts.runtime import Capability, Runtime
from nemesis.expectations import Expectation
from nemesis.kill import Kill
from nemesis.nearest import or_nearest
from nemesis.partition import Partition
from nemesis.pause import Pause
from nemesis.power import Power
from nemesis.targets import ClusterView


class FaultKind(Protocol):
    """One kind of fault."""

    name: str
    #: What the runtime must be able to do.
    needs: frozenset[Capability]
    #: Targets that the plan draws from where the user names none, besides ``leader``.
    other_targets: tuple[str, ...]
    #: Symbolic targets that make no sense for this kind.
    refused_targets: frozenset[str]
    #: Whether at least one node must stay out of the target.
    leaves_one: bool

    def actual(self, fault: ScheduledFault, view: ClusterView) -> ActualFault | None:
        """What the scheduled fault means now; None where its target does not exist."""
        ...

    def inject(self, runtime: Runtime, fault: ActualFault) -> str | None:
        """Tell the runtime to do it; raises what the runtime raises.

        Returns:
            What the runtime says of it beyond what can be seen from outside, None: nothing.
        """
        ...

    def heal(self, runtime: Runtime, fault: ActualFault) -> None:
        """Tell the runtime to undo it; raises what the runtime raises."""
        ...

    def when_bitten(
        self, fault: ActualFault, nodes: tuple[NodeName, ...], /
    ) -> tuple[Expectation, ...]:
        """What must be seen while the fault is in force; ``nodes`` are all of the cluster's."""
        ...

    def when_healed(
        self, fault: ActualFault, nodes: tuple[NodeName, ...], /
    ) -> tuple[Expectation, ...]:
        """What must be seen after it was healed, application traffic apart."""
        ...

    def downs(self, fault: ActualFault, /) -> frozenset[NodeName]:
        """Nodes whose process ends by this fault, so that its exit is no failure of the system."""
        ...


_KINDS: Final[dict[str, FaultKind]] = {
    kind.name: kind for kind in (Partition(), Pause(), Kill(), Power())
}


def kind_names() -> tuple[str, ...]:
    """Names of all fault kinds, sorted."""
    return tuple(sorted(_KINDS))


def fault_kind(name: str) -> FaultKind:
    """The kind of this name.

    Raises:
        UsageError: there is none.
    """
    kind = _KINDS.get(name)
    if kind is None:
        raise UsageError(
            f"there is no fault called {name!r}", or_nearest(name, kind_names(), "faults")
        )
    return kind
