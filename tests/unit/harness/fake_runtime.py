"""The runtime around the quorum in memory: it can be told to do nothing, or to fail."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn, cast

import msgspec

from splitbrain.contracts.arms import ClockArm, DiskArm, LinkArm, ProcessArm
from splitbrain.contracts.errors import CapabilityError, HarnessError
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import (
    Address,
    Capability,
    DeploymentSpec,
    ImageSource,
    NodeSample,
    NodeStatus,
    Placement,
)
from splitbrain.runtimes.lacking import LackingClocks, LackingLinks
from tests.unit.harness.fake_quorum import FakeNode, FakeQuorum


class NoArm:
    """Refuses whatever it is asked."""

    def __getattr__(self, name: str) -> NoReturn:
        raise CapabilityError(name, "runtime fake", "it cannot do this", "Leave it out.")


class FakeRuntime:
    name = "fake"
    cuts_power_by_durable_lengths = True

    def __init__(self, quorum: FakeQuorum) -> None:
        self.quorum = quorum
        self.links: LinkArm = LackingLinks("fake", "Leave it out.")
        self.processes: ProcessArm = cast("ProcessArm", NoArm())
        self.disks: DiskArm = cast("DiskArm", NoArm())
        self.clocks: ClockArm = LackingClocks("fake", "Leave it out.")
        self.can: frozenset[Capability] = frozenset({"partition", "kill", "pause"})
        self.injects = True
        self.heals = True
        self.fails_at: str | None = None
        self.torn_down = 0
        self.deployed = False
        self.calls: list[str] = []

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.fails_at == name:
            raise HarnessError(name, "fake", "it was told to fail", "Tell it otherwise.")

    def capabilities(self) -> frozenset[Capability]:
        return self.can

    def prepare(self, images: Sequence[ImageSource]) -> None:
        self._called("prepare")

    def place(self, node: NodeName, host_folder: Path, ports: Mapping[str, int]) -> Placement:
        return Placement("0.0.0.0", node, dict(ports), "/config", "/state", "/data")

    def deploy(self, spec: DeploymentSpec) -> None:
        self._called("deploy")
        self.spec = spec
        for number, node in enumerate(spec.nodes, start=1):
            fake = FakeNode(node.name, number)
            fake.events = spec.run_folder / "nodes" / node.name / "raw.jsonl"
            self.quorum.nodes[node.name] = fake
            self.quorum.tell(fake, "started")
        self.deployed = True

    def nodes(self) -> Sequence[NodeName]:
        return tuple(self.quorum.nodes)

    def endpoint(self, node: NodeName, port: str) -> Address:
        return Address("127.0.0.1", 1)

    def start(self, node: NodeName) -> None:
        self._called("start")
        fake = self.quorum.nodes[node]
        with self.quorum.lock:
            if self.heals and fake.status == "exited":
                fake.status = "running"
                fake.incarnation, fake.sequence, fake.leads_epoch = fake.incarnation + 1, 0, 0
                self.quorum.tell(fake, "started")

    def kill(self, node: NodeName) -> None:
        self._called("kill")
        with self.quorum.lock:
            if self.injects:
                self.quorum.nodes[node].status = "exited"
                self.quorum.nodes[node].exit_code = 137

    def pause(self, node: NodeName) -> None:
        self._called("pause")
        with self.quorum.lock:
            if self.injects:
                self.quorum.nodes[node].status = "paused"

    def resume(self, node: NodeName) -> None:
        self._called("resume")
        with self.quorum.lock:
            if self.heals and self.quorum.nodes[node].status == "paused":
                self.quorum.nodes[node].status = "running"

    def cut(self, links: Iterable[Link]) -> None:
        self._called("cut")
        with self.quorum.lock:
            if self.injects:
                self.quorum.cut |= set(links)
                self.quorum.settle()

    def restore(self, links: Iterable[Link]) -> None:
        self._called("restore")
        with self.quorum.lock:
            if self.heals:
                self.quorum.cut -= set(links)
                self.quorum.settle()

    def heal_all(self) -> None:
        self._called("heal_all")
        with self.quorum.lock:
            self.quorum.cut.clear()
            for node in self.quorum.nodes.values():
                if node.status == "paused":
                    node.status = "running"

    def status(self, node: NodeName) -> NodeStatus:
        return self.quorum.nodes[node].status

    def exit_code(self, node: NodeName) -> int | None:
        return self.quorum.nodes[node].exit_code

    def reachable(self, link: Link, port: str, timeout_s: float) -> bool:
        return not {link, Link(link.destination, link.source)} & self.quorum.cut

    def sample(self, node: NodeName) -> NodeSample | None:
        if self.quorum.nodes[node].status == "exited":
            return None
        return NodeSample(node, 0.5, 1 << 20)

    def log_tail(self, node: NodeName, lines: int) -> str:
        return "ImportError\n"

    def collect(self, node: NodeName, folder: Path, *, with_data: bool) -> None:
        self._called("collect")
        (folder / "node.log").write_text("started\n")
        data = folder / "data"
        data.mkdir()
        entries = msgspec.json.encode(self.quorum.nodes[node].log)
        (data / "log.json").write_bytes(entries)

    def versions(self) -> dict[str, str]:
        return {"fake": "1"}

    def teardown(self) -> None:
        self._called("teardown")
        self.torn_down += 1
        self.deployed = False
