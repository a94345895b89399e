"""The client of simulated worlds on a simulated network; its rules are the machine's."""

from collections.abc import Callable
from typing import Any

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.scenario import NetworkOptions
from splitbrain.contracts.system import Route
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest
from splitbrain.simulation.kraft.client import SimulatedKraftClient
from splitbrain.simulation.kraft.messages import Greeting, Knock
from tests.unit.simulation.kraft.unwatched_worlds import SECOND_US, Quorum

NODES = (NodeName("n1"), NodeName("n2"), NodeName("n3"))
DELAY_US = 100
TIMEOUT_US = SECOND_US
#: Answers a request, or with None not at all.
Rule = Callable[[ClientRequest], ClientAnswer | None]

WRITE = Operation("write", "r1", 5)


def agrees(request: ClientRequest) -> ClientAnswer:
    return ClientAnswer(request.id, "ok", True, True, epoch=3, offset=17)


def refuses(leader_id: int | None = None) -> Rule:
    def rule(request: ClientRequest) -> ClientAnswer:
        return ClientAnswer(request.id, "not-leader", True, leader_id=leader_id, reason="planted")

    return rule


def silent(_: ClientRequest) -> None:
    return None


class _Server:
    """A node as clients see it."""

    def __init__(self, world: Any, name: NodeName, rule: Rule | None) -> None:
        self._world = world
        self._name = name
        #: None: it does not greet, as a frozen node.
        self.rule = rule
        self.requests: list[tuple[int, ClientRequest]] = []
        self.gone: list[int] = []
        world.network.listen(name, self)

    def requested(self, connection: int, source: str, message: Any) -> None:
        network = self._world.network
        if self.rule is None:
            return
        if isinstance(message, Knock):
            network.answer(self._name, connection, Greeting())
            return
        self.requests.append((self._world.now, message))
        answer = self.rule(message)
        if answer is not None:
            network.answer(self._name, connection, answer)

    def disconnected(self, connection: int) -> None:
        self.gone.append(connection)


class Stage:
    """Three false nodes and one client."""

    def __init__(self, *rules: Rule | None, kind: Any = "leader") -> None:
        self.world = Quorum(
            network=NetworkOptions(
                delay_us_min=DELAY_US, delay_us_max=DELAY_US, half_open_chance=0.0
            )
        ).world
        self.servers = [
            _Server(self.world, name, rule) for name, rule in zip(NODES, rules, strict=False)
        ]
        self.client = SimulatedKraftClient(self.world, "c0", "c0.1", NODES, Route(kind, NODES[0]))
        self.completions: list[tuple[int, Completion]] = []

    def invoke(self, operation: Operation, timeout_us: int = TIMEOUT_US) -> None:
        self.client.invoke(
            operation, timeout_us, lambda it: self.completions.append((self.world.now, it))
        )

    def ask(self, operation: Operation, timeout_us: int = TIMEOUT_US) -> Completion:
        known = len(self.completions)
        self.invoke(operation, timeout_us)
        self.world.run(self.world.now + 2 * timeout_us)
        assert len(self.completions) == known + 1, "told once"
        return self.completions[-1][1]

    def requests(self) -> list[int]:
        return [len(server.requests) for server in self.servers]


def test_nothing_is_sent_before_the_greeting_and_the_greeting_serves_all_that_follows() -> None:
    stage = Stage(agrees)
    stage.ask(WRITE)
    stage.ask(WRITE)
    # Knock and greeting first; then one way each.
    assert stage.servers[0].requests[0][0] == 3 * DELAY_US
    assert stage.servers[0].requests[1][0] == 2 * TIMEOUT_US + DELAY_US
    identities = [request.operation for _, request in stage.servers[0].requests]
    assert identities == ["c0.1-1", "c0.1-2"]


def test_a_connection_lost_after_sending_is_unknown_and_no_other_node_is_asked() -> None:
    stage = Stage(silent, agrees, agrees)
    stage.invoke(WRITE)
    stage.world.run(10_000)
    stage.world.network.reset(NODES[0])
    stage.world.run(2 * TIMEOUT_US)
    assert [it for _, it in stage.completions] == [
        Completion("info", error="connection-lost", node="n1")
    ]
    assert stage.requests() == [1, 0, 0]


def test_a_frozen_node_is_left_soon_and_avoided_for_a_while_even_if_it_is_named() -> None:
    stage = Stage(None, refuses(1), agrees)
    assert stage.ask(WRITE, timeout_us=300_000).node == "n3"
    assert 200_000 <= stage.completions[0][0] < 210_000
    stage.servers[0].rule, stage.servers[1].rule, stage.servers[2].rule = agrees, agrees, refuses(1)
    assert stage.world.now == 600_000
    assert stage.ask(WRITE).node == "n2", "avoided for half a second"
    stage.servers[1].rule = refuses(1)
    assert stage.ask(WRITE).node == "n1", "by now it may be asked again"


def test_a_late_answer_never_meets_a_later_operation() -> None:
    late: list[tuple[int, ClientRequest]] = []
    stage = Stage(silent, kind="pinned")
    stage.ask(WRITE, timeout_us=50_000)
    late.append(stage.servers[0].requests[0])
    stage.servers[0].rule = silent
    stage.invoke(Operation("write", "r1", 6), 50_000)
    stage.world.run(stage.world.now + 10_000)
    # The first connection is number 1; the node answers there after all.
    stage.world.network.answer("n1", 1, agrees(late[0][1]))
    stage.world.run(stage.world.now + 200_000)
    assert [it.type for _, it in stage.completions] == ["info", "info"]


def test_after_close_nothing_is_reported() -> None:
    stage = Stage(agrees)
    stage.invoke(WRITE)
    stage.client.close()
    stage.client.close()
    stage.world.run(2 * TIMEOUT_US)
    assert stage.completions == []
    assert len(stage.servers[0].gone) == 1


def test_closed_between_two_attempts_nothing_is_asked_any_more() -> None:
    stage = Stage(refuses(), refuses(), refuses())
    stage.invoke(WRITE)
    stage.world.run(4_000)
    asked = sum(stage.requests())
    stage.client.close()
    stage.world.run(2 * TIMEOUT_US)
    assert sum(stage.requests()) == asked
    assert stage.completions == []


def test_a_connection_that_breaks_between_operations_is_opened_anew() -> None:
    stage = Stage(agrees, kind="pinned")
    stage.ask(WRITE)
    stage.world.network.reset(NODES[0])
    stage.world.run(stage.world.now + 10_000)
    assert stage.ask(WRITE).type == "ok"
    assert stage.requests()[0] == 2
