"""The links between a run's pods: cuts, probes, and the tools of each pod's pause container.

Everything is done in the pause containers, by the tools that ``docker/pod`` puts into their image.
It acts on the run's own pods only.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import docker.errors
from docker import DockerClient

from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.runtimes.docker.engine import engine_action
from splitbrain.runtimes.docker.names import OWNER_LABEL, ROLE_LABEL, RunMark
from splitbrain.runtimes.docker.pods import TOOLS, Pod
from splitbrain.runtimes.link_probes import LinkTools
from splitbrain.runtimes.owners import this_process
from splitbrain.runtimes.waiting import on_all

#: Shapes taken for possible until the pod's image, with which they can be tried, is there.
_USUAL_MEANS: Final = frozenset({"loss", "black-hole", "queue", "rate", "reset"})
#: The trial belongs to no run folder: the process that made it says whether it is left behind.
_TRIAL: Final = RunMark(RunId("trial-of-the-kernel"), "/nonexistent/trial/lock")


class PodLinks(LinkTools):
    """The tools in the pods, and the cuts; ``pods`` come and go."""

    def __init__(self, pods: Mapping[NodeName, Pod], pod_of: Callable[[NodeName], Pod]) -> None:
        super().__init__()
        self._pods = pods
        self._pod = pod_of

    # --- cuts ---------------------------------------------------------------------------------

    def change(self, action: str, links: Iterable[Link]) -> None:
        """``cut`` or ``restore`` these links."""
        sources: defaultdict[NodeName, list[str]] = defaultdict(list)
        for link in sorted(set(links)):
            sources[link.destination].append(self._pod(link.source).address)
        # Packets are dropped where they arrive: a drop on the sender's side would be told to it.
        on_all(
            [(self._pod(node), addresses) for node, addresses in sources.items()],
            lambda change: change[0].firewall(action, change[1]),
        )

    def cut(self) -> frozenset[Link]:
        """Return the links that are cut now, as the kernel tells it."""
        by_address = {pod.address: name for name, pod in self._pods.items()}
        listings = on_all(
            self._pods.items(), lambda item: (item[0], item[1].firewall("list").split())
        )
        return frozenset(
            Link(source=by_address[address], destination=destination)
            for destination, addresses in listings
            for address in addresses
        )

    # --- probes -------------------------------------------------------------------------------

    def reachable(self, link: Link, port: str, timeout_s: float) -> bool:
        """Whether a new connection along the link opens and is answered within the time."""
        destination = self._pod(link.destination)
        number = destination.spec.ports[port]
        code, _ = self._pod(link.source).execute(
            ["probe.py", "connect", destination.address, str(number), str(timeout_s)]
        )
        return code == 0

    # --- tools --------------------------------------------------------------------------------

    def nodes(self) -> Sequence[NodeName]:
        """Return the deployed nodes."""
        return list(self._pods)

    def address(self, node: NodeName) -> str:
        """Of the node's pod in the run's network."""
        return self._pod(node).address

    def run(self, node: NodeName, command: Sequence[str]) -> str:
        """Run a tool in the node's pod; what it printed."""
        return self._pod(node).run(f"run {command[0]} for {node}", *command)

    def answer_with_resets(self, node: NodeName, sources: Collection[str]) -> None:
        """From now on answer exactly these addresses' packets of connections with resets."""
        self._pod(node).firewall("resets", sorted(sources))

    def answered_with_resets(self, node: NodeName) -> Collection[str]:
        """Those addresses, as the kernel tells it."""
        return self._pod(node).firewall("list-resets").split()


class EngineMeans:
    """Means of the engine's kernel for links, tried once per image in a pod without a network."""

    def __init__(self) -> None:
        self._found: dict[str, frozenset[str]] = {}

    def of(self, client: DockerClient, tag: str) -> frozenset[str]:
        """Words of ``links.py means`` in the pod's image of this tag.

        Where it is not there yet, the usual is taken for possible; a shape that the kernel refuses
        is then refused when it is asked for.
        """
        with engine_action("look for an image", tag):
            try:
                image_id = str(client.images.get(tag).id)
            except docker.errors.ImageNotFound:
                return _USUAL_MEANS
        if image_id not in self._found:
            containers: Any = client.containers
            with engine_action("try what the kernel can do to links", image_id):
                printed = containers.run(
                    image_id,
                    ["means"],
                    entrypoint=[f"{TOOLS}/links.py"],
                    network_mode="none",
                    cap_add=["NET_ADMIN"],
                    # A sweep takes it if this process dies before it has removed it.
                    labels={
                        **_TRIAL.labels(),
                        ROLE_LABEL: "pod",
                        OWNER_LABEL: this_process().word(),
                    },
                    remove=True,
                )
            self._found[image_id] = frozenset(json.loads(printed))
        return self._found[image_id]


#: Kernels do not change while a process lives.
ENGINE_MEANS: Final = EngineMeans()
