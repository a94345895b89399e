"""The links between namespaced nodes, from the harness' end: each act is a call to the host.

Changes inside of a node's network are made by the tools of the container runtime's pods
(``docker/pod``), which the host starts there; they do here what they do there.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from splitbrain.contracts.names import NodeName
from splitbrain.runtimes.link_probes import ProbedLinks
from splitbrain.runtimes.local.control import HostLink

#: Longest that a tool may take: a probe waits for what may never come.
_TOOL_PATIENCE_S: Final = 180.0


class HostLinks(ProbedLinks):
    """Implements :class:`runtimes.link_shapes.LinkTools`.

    Args:
        host: gives the link to the host; raises HarnessError where nothing is deployed.
        nodes: the deployed nodes, as they come and go.
        refuse_unknown: raises HarnessError for a node that is not deployed.
    """

    def __init__(
        self,
        host: Callable[[], HostLink],
        nodes: Callable[[], Sequence[NodeName]],
        refuse_unknown: Callable[[NodeName], Any],
    ) -> None:
        super().__init__()
        self._host = host
        self._nodes = nodes
        self._refuse_unknown = refuse_unknown
        self._addresses: dict[NodeName, str] = {}

    def nodes(self) -> Sequence[NodeName]:
        """Return the deployed nodes."""
        return self._nodes()

    def address(self, node: NodeName) -> str:
        """Of the node in the network of nodes."""
        self._refuse_unknown(node)
        if node not in self._addresses:
            found = self._call("find the nodes' addresses", node, "addresses")
            self._addresses = {NodeName(name): address for name, address in found.items()}
        return self._addresses[node]

    def run(self, node: NodeName, words: Sequence[str]) -> str:
        """Run a tool inside the node's network; what it printed."""
        action, host = f"run {words[0]}", self._host()
        return host.call(action, node, "tool", node, list(words), timeout_s=_TOOL_PATIENCE_S)

    def answer_with_resets(self, node: NodeName, sources: Collection[str]) -> None:
        """From now on answer exactly these addresses' packets of connections with resets."""
        self._call("change resets", node, "set_resets", node, sorted(sources))

    def answered_with_resets(self, node: NodeName) -> Collection[str]:
        """Those addresses, as the kernel tells it."""
        return self._call("list resets", node, "resets", node)

    def _call(self, action: str, target: str, method: str, *arguments: Any) -> Any:
        return self._host().call(action, target, method, *arguments)
