"""Things that are none of splitbrain's, put up to see that nobody touches them.

A running container, a network, a volume, and a firewall rule in a chain of its own, which nothing
jumps to.
"""

import subprocess
from contextlib import ExitStack
from typing import Any, Self

from docker import DockerClient

from splitbrain.runtimes.docker.images import POD, Images


class ForeignThings:
    """Made on entering the context, removed on leaving it."""

    def __init__(self, client: DockerClient, name: str) -> None:
        self._client = client
        self._name = name
        self._removals = ExitStack()
        #: Part of a snapshot's line about one of them.
        self.tokens = (name,)

    def __enter__(self) -> Self:
        client: Any = self._client
        with ExitStack() as removals:
            image = Images(client).ensure(())[POD.name]
            labels = {"somebody": "else"}
            container = client.containers.run(image, name=self._name, labels=labels, detach=True)
            removals.callback(container.remove, force=True)
            removals.callback(client.networks.create(self._name, labels=labels).remove)
            removals.callback(client.volumes.create(self._name, labels=labels).remove)
            chain = self._name.upper().replace("-", "_")[-28:]
            self.tokens = (self._name, chain)
            self._firewall("--new-chain", chain)
            removals.callback(self._firewall, "--delete-chain", chain)
            self._firewall("--append", chain, "--source", "192.0.2.1", "--jump", "DROP")
            removals.callback(self._firewall, "--flush", chain)
            self._removals = removals.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._removals.close()

    def _firewall(self, *arguments: str) -> None:
        subprocess.run(["iptables", "--wait", *arguments], check=True, capture_output=True)
