"""A cluster inside its host process: nodes and links, and what the harness may ask of them."""

import os
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from splitbrain.runtimes.local.control import HostPlan, PlannedNode
from splitbrain.runtimes.local.network import Network, NodeNetwork
from splitbrain.runtimes.local.node_process import NodeProcess, Surroundings
from splitbrain.runtimes.waiting import on_all


class Cluster:
    """The nodes, and what the harness may ask; each method is one call."""

    def __init__(self, plan: HostPlan, network: Network | None) -> None:
        self._network = network
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="starter")
        self._nodes = {
            node.name: NodeProcess(node, self._surroundings(node), self._starter)
            for node in plan.nodes
        }
        # Calls for one node wait for each other; a probe and a look never wait.
        self._one_at_a_time = {
            name: ThreadPoolExecutor(1, thread_name_prefix=name) for name in self._nodes
        }

    def _surroundings(self, node: PlannedNode) -> Surroundings | None:
        if self._network is None:
            return None
        return Surroundings(self._network.nodes[node.name].namespace, self._network.hosts)

    def calls(self) -> Mapping[str, Callable[..., Any]]:
        """Requests by name."""
        return {
            "start": partial(self._act, NodeProcess.start),
            "kill": partial(self._act, NodeProcess.kill),
            "kill_all": self._kill_all,
            "pause": partial(self._act, NodeProcess.pause),
            "resume": partial(self._act, NodeProcess.resume),
            "status": partial(self._look, NodeProcess.status),
            "exit_code": partial(self._look, NodeProcess.exit_code),
            "use": partial(self._look, NodeProcess.use),
            "program": partial(self._look, NodeProcess.program),
            "signal": partial(self._look, NodeProcess.signal),
            "firewall": self._firewall,
            "cut": self._cut,
            "restore": self._restore,
            "heal": self._heal,
            "cut_links": self._cut_links,
            "probe": self._probe,
            "addresses": self._addresses,
            "tool": partial(self._inside, NodeNetwork.run_tool),
            "set_resets": partial(self._inside, NodeNetwork.refuse),
            "shown": partial(self._inside, NodeNetwork.shown),
        }

    def end(self) -> None:
        """End all nodes, side by side."""
        on_all(self._nodes.values(), NodeProcess.end)

    def _act(self, action: Callable[[NodeProcess], None], node: str) -> None:
        self._one_at_a_time[node].submit(action, self._nodes[node]).result()

    def _look(self, look: Callable[..., Any], node: str, *arguments: Any) -> Any:
        return look(self._nodes[node], *arguments)

    def _inside(self, act: Callable[..., Any], node: str, *arguments: Any) -> Any:
        return act(self._networks()[node], *arguments)

    def _kill_all(self, nodes: list[str]) -> None:
        """All processes of all these nodes at one moment, before anybody can take over."""
        doomed = [number for node in nodes for number in self._nodes[node].numbers()]
        for number in doomed:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        for node in nodes:
            self._act(NodeProcess.kill, node)

    def _firewall(self) -> str:
        return "" if self._network is None else self._network.firewall

    def _cut(self, links: list[tuple[str, str]]) -> None:
        for destination, sources in self._by_destination(links):
            destination.drop(more=sources)

    def _restore(self, links: list[tuple[str, str]]) -> None:
        for destination, sources in self._by_destination(links):
            destination.drop(fewer=sources)

    def _heal(self) -> None:
        if self._network is not None:
            on_all(self._network.nodes.values(), NodeNetwork.hear_all)
        for node in self._nodes:
            self._act(NodeProcess.resume, node)

    def _cut_links(self) -> list[tuple[str, str]]:
        if self._network is None:
            return []
        names = {node.address: name for name, node in self._network.nodes.items()}
        return [
            (names[address], name)
            for name, node in self._network.nodes.items()
            for address in node.shown("drop")
        ]

    def _probe(self, node: str, other: str, port: str, timeout_s: str) -> bool:
        networks = self._networks()
        return networks[node].probe(networks[other].address, port, timeout_s)

    def _networks(self) -> Mapping[str, NodeNetwork]:
        assert self._network is not None, "plain processes have no links"
        return self._network.nodes

    def _addresses(self) -> dict[str, str]:
        return {name: node.address for name, node in self._networks().items()}

    def _by_destination(self, links: list[tuple[str, str]]) -> list[tuple[NodeNetwork, set[str]]]:
        networks = self._networks()
        sources: dict[str, set[str]] = {}
        for source, destination in links:
            sources.setdefault(destination, set()).add(networks[source].address)
        return [(networks[name], addresses) for name, addresses in sources.items()]
