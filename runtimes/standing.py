"""The runtime of clusters that are there already: it deploys nothing, and does nothing to a node.

Nodes are where their specs say. Faults are refused one and all, so that a plan without any is all
that can be run; at the end nodes are let go and not stopped.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, cast

from splitbrain.contracts.arms import ClockArm, DiskArm, LinkArm, ProcessArm
from splitbrain.contracts.errors import CapabilityError
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import (
    STANDING,
    Address,
    Capability,
    DeploymentSpec,
    ImageSource,
    NodeSample,
    NodeSpec,
    NodeStatus,
    Placement,
)
from splitbrain.runtimes.lacking import LackingClocks, LackingLinks, no_such_port

_NEXT: Final = "Leave faults out of the plan: --nemesis none"
_PROBLEM: Final = "its nodes are somebody else's"


class StandingRuntime:
    """Implements :class:`contracts.runtime.Runtime` for nodes that are somebody else's."""

    name = STANDING
    cuts_power_by_durable_lengths = False

    def __init__(self) -> None:
        self._specs: dict[NodeName, NodeSpec] = {}
        self._let_go: set[NodeName] = set()
        self.links: LinkArm = LackingLinks(self.name, _NEXT, _PROBLEM)
        self.processes: ProcessArm = cast("ProcessArm", _NoArm())
        self.disks: DiskArm = cast("DiskArm", _NoArm())
        self.clocks: ClockArm = LackingClocks(self.name, _NEXT, _PROBLEM)

    def capabilities(self) -> frozenset[Capability]:
        """Return none."""
        return frozenset()

    def prepare(self, images: Sequence[ImageSource]) -> None:
        """Nothing is built."""

    def place(self, node: NodeName, host_folder: Path, ports: Mapping[str, int]) -> Placement:
        """Return the node's folders in the run folder, in which nothing will ever be written."""
        folder = str(host_folder.absolute())
        return Placement("", "", dict(ports), folder, folder, folder)

    def deploy(self, spec: DeploymentSpec) -> None:
        """Note where the nodes are."""
        self._specs = {node.name: node for node in spec.nodes}

    def nodes(self) -> Sequence[NodeName]:
        """Return the nodes, in the order of the spec."""
        return [*self._specs]

    def endpoint(self, node: NodeName, port: str) -> Address:
        """Return where a node is, as its spec has it; raises HarnessError for a strange port."""
        spec = self._specs[node]
        if port not in spec.ports:
            raise no_such_port(node, port)
        return Address(spec.host, spec.ports[port])

    def start(self, node: NodeName) -> None:
        """Refused."""
        _refuse(f"start {node}")

    def kill(self, node: NodeName) -> None:
        """Let a node go, which lives on: so a run ends, and no plan has a kill."""
        self._let_go.add(node)

    def pause(self, node: NodeName) -> None:
        """Refused."""
        _refuse(f"pause {node}")

    def resume(self, node: NodeName) -> None:
        """Refused."""
        _refuse(f"resume {node}")

    def cut(self, links: Iterable[Link]) -> None:
        """Refused."""
        _refuse("cut links")

    def restore(self, links: Iterable[Link]) -> None:
        """Refused."""
        _refuse("restore links")

    def heal_all(self) -> None:
        """Nothing was ever done to a node."""

    def status(self, node: NodeName) -> NodeStatus:
        """Return ``running`` until a node is let go: nobody looks at it from outside."""
        return "missing" if node in self._let_go else "running"

    def exit_code(self, node: NodeName) -> int | None:
        """Return None: nobody knows."""
        del node

    def reachable(self, link: Link, port: str, timeout_s: float) -> bool:
        """Refused: nothing is in the nodes' network."""
        del port, timeout_s
        _refuse(f"probe the link from {link.source} to {link.destination}")

    def sample(self, node: NodeName) -> NodeSample | None:
        """Return None: nobody knows."""
        del node

    def log_tail(self, node: NodeName, lines: int) -> str:
        """Return nothing: nobody knows."""
        del node, lines
        return ""

    def collect(self, node: NodeName, folder: Path, *, with_data: bool) -> None:
        """Nothing of a node is ours to fetch."""

    def versions(self) -> dict[str, str]:
        """Return the nodes' addresses."""
        return {
            node: f"{spec.host}:{port}"
            for node, spec in self._specs.items()
            for port in spec.ports.values()
        }

    def teardown(self) -> None:
        """Forget the nodes."""
        self._specs.clear()


class _NoArm:
    """Refuses every act."""

    def __getattr__(self, act: str) -> Any:
        _refuse(act.replace("_", " "))


def _refuse(action: str) -> NoReturn:
    raise CapabilityError(action, f"runtime {STANDING}", _PROBLEM, _NEXT)
