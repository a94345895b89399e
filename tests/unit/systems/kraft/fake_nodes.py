"""Nodes of the quorum on loopback that answer as they are told, and count what they are asked."""

import socket
from collections.abc import Callable, Mapping
from typing import Self

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Address
from splitbrain.nodes.transport.client_listener import ClientListener
from splitbrain.nodes.transport.client_protocol import PROTOCOL_VERSION, ClientRequest, Hello, Reply
from splitbrain.nodes.transport.metrics_listener import MetricsListener

N1, N2, N3 = (NodeName(f"n{number}") for number in (1, 2, 3))
Behaviour = Callable[[ClientRequest, Reply], None]


def is_silent(request: ClientRequest, reply: Reply) -> None:
    """Takes the request and never answers."""


def is_frozen(request: ClientRequest, reply: Reply) -> None:
    """Connections open, for the kernel takes them, and no node greets."""


class FakeNodes:
    """A listener for clients and one for figures a node; a context manager."""

    def __init__(
        self, behaviours: Mapping[NodeName, Behaviour | None], without_figures: str = ""
    ) -> None:
        """A node without behaviour does not listen, one without figures not for who asks these."""
        self.behaviours = behaviours
        self._without_figures = without_figures
        self.asked: list[NodeName] = []
        self.requests: list[ClientRequest] = []
        #: Nodes whose address was asked for, to connect to them.
        self.visited: list[NodeName] = []
        self.ports: dict[tuple[NodeName, str], int] = {}
        self._listeners: list[ClientListener | MetricsListener] = []
        self._frozen: list[socket.socket] = []

    async def __aenter__(self) -> Self:
        for node, behaviour in self.behaviours.items():
            text = f"node_id {node[1]}\n".encode()
            figures = MetricsListener(lambda text=text: text, "text/plain")
            self.ports[node, "metrics"] = await figures.listen("127.0.0.1", 0)
            if node == self._without_figures:
                await figures.close()
            else:
                self._listeners.append(figures)
            if behaviour is is_frozen:
                self._frozen.append(socket.create_server(("127.0.0.1", 0)))
                self.ports[node, "client"] = self._frozen[-1].getsockname()[1]
                continue
            listener = ClientListener(
                Hello(PROTOCOL_VERSION, int(node[1]), 0), self._handler(node), lambda _: None
            )
            self.ports[node, "client"] = await listener.listen("127.0.0.1", 0)
            self._listeners.append(listener)
            if behaviour is None:
                await listener.close()
        return self

    async def __aexit__(self, *_: object) -> None:
        for listener in self._listeners:
            await listener.close()
        for server in self._frozen:
            server.close()

    def nodes(self) -> list[NodeName]:
        return list(self.behaviours)

    def endpoint(self, node: NodeName, port: str = "client") -> Address:
        self.visited.append(node)
        return Address("127.0.0.1", self.ports[node, port])

    def _handler(self, node: NodeName) -> Behaviour:
        def handle(request: ClientRequest, reply: Reply) -> None:
            self.asked.append(node)
            self.requests.append(request)
            behaviour = self.behaviours[node]
            assert behaviour is not None
            behaviour(request, reply)

        return handle
