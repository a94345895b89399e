"""The links between a run's pods: tools of each pod's pause container, and the kernel's means.

Everything is done in the pause containers, by the tools that ``docker/pod`` puts into their image.
It acts on the run's own pods only.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import docker.errors
from docker import DockerClient

from splitbrain.contracts.names import NodeName, RunId
from splitbrain.runtimes.docker.engine import engine_action
from splitbrain.runtimes.docker.names import ROLE_LABEL, RunMark
from splitbrain.runtimes.docker.pods import TOOLS, Pod
from splitbrain.runtimes.link_probes import LinkTools
from splitbrain.runtimes.owners import this_process

#: Shapes taken for possible until the pod's image, with which they can be tried, is there.
_USUAL_MEANS: Final = frozenset({"loss", "black-hole", "queue", "rate", "reset"})
#: By the image's id: kernels do not change while a process lives.
_FOUND_MEANS: Final[dict[str, frozenset[str]]] = {}
#: The trial belongs to no run folder: the process that made it says whether it is left behind.
_TRIAL_RUN: Final = RunId("trial-of-the-kernel")
_TRIAL_LOCK: Final = "/nonexistent/trial/lock"


class PodLinks(LinkTools):
    """The tools in the pods, which come and go."""

    def __init__(self, pods: Mapping[NodeName, Pod], pod_of: Callable[[NodeName], Pod]) -> None:
        super().__init__()
        self._pods = pods
        self._pod = pod_of

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


def engine_means(client: DockerClient, tag: str) -> frozenset[str]:
    """Words of ``links.py means`` in the pod's image of this tag, tried in a pod without a network.

    Where it is not there yet, the usual is taken for possible; a shape that the kernel refuses is
    then refused when it is asked for.
    """
    with engine_action("look for an image", tag):
        try:
            image_id = str(client.images.get(tag).id)
        except docker.errors.ImageNotFound:
            return _USUAL_MEANS
    if image_id not in _FOUND_MEANS:
        # A sweep takes it if this process dies before it has removed it.
        mark = RunMark(_TRIAL_RUN, _TRIAL_LOCK, this_process().word())
        containers: Any = client.containers
        with engine_action("try what the kernel can do to links", image_id):
            printed = containers.run(
                image_id,
                ["means"],
                entrypoint=[f"{TOOLS}/links.py"],
                network_mode="none",
                cap_add=["NET_ADMIN"],
                labels={**mark.labels(), ROLE_LABEL: "pod"},
                remove=True,
            )
        _FOUND_MEANS[image_id] = frozenset(json.loads(printed))
    return _FOUND_MEANS[image_id]
