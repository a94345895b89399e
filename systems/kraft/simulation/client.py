"""A workload's client in a simulated world: pinned to one node, or following the leader.

The twin of ``systems.kraft.client``, under the same rules and the same error table: a node must
greet before anything is sent, a leader-following client goes on only while it is certain that
nothing was appended. Must never send one operation twice once it may have been appended.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from contracts.names import NodeName
from contracts.operations import Completion, Operation
from contracts.simulation import Connection, Timer, World
from contracts.system import Route
from nodes.transport.client_protocol import ClientAnswer, ClientRequest
from systems.kraft.aim import CONNECT_TIMEOUT_US, ROUND_PAUSE_US, Aim
from systems.kraft.client_machine import NODE_HEADSTART_US
from systems.kraft.outcomes import (
    LOST,
    NO_LEADER,
    NOT_SENT,
    REQUEST_KINDS,
    TIMED_OUT,
    answered,
    certainly_not,
    may_go_on,
    unanswered,
)
from systems.kraft.simulation.messages import Greeting, Knock
from systems.kraft.state_machines import node_name

Done = Callable[[Completion], None]


class _Task(msgspec.Struct):
    """The operation under way."""

    operation: Operation
    deadline: int
    done: Done
    #: When the present attempt began.
    began: int = 0
    is_sent: bool = False
    #: Rings at the deadline, or when a greeting is overdue.
    timer: Timer | None = None


class SimulatedKraftClient:
    """One worker slot's connection; implements ``contracts.simulation.SimulatedClient``."""

    def __init__(
        self, world: World, place: str, name: str, nodes: Sequence[NodeName], route: Route
    ) -> None:
        """A client that connects at its first operation.

        Args:
            world: where it lives.
            place: its address.
            name: unique among all clients; goes into the log with each command.
            nodes: all nodes, in the order in which they are tried.
            route: pinned to a node, or led by it to the leader.
        """
        self._world = world
        self._place = place
        self._name = name
        self._is_pinned = route.kind == "pinned"
        self._aim = Aim(nodes, route.node)
        self._connection: Connection | None = None
        self._end: _End | None = None
        self._connected_to: NodeName | None = None
        self._is_greeted = False
        self._sent_count = 0
        self._task: _Task | None = None
        self._pause: Timer | None = None

    def invoke(self, operation: Operation, timeout_us: int, done: Done) -> None:
        """Perform one operation; see ``contracts.simulation.SimulatedClient``."""
        if operation.f not in REQUEST_KINDS:
            done(certainly_not("unknown-operation", None))
            return
        self._task = _Task(operation, self._world.now + timeout_us, done)
        self._aim.begin()
        self._attempt()

    def close(self) -> None:
        """Drop the connection; an open operation is not reported any more."""
        self._stop_timers()
        self._task = None
        self._disconnect()

    # One attempt at one node.

    def _attempt(self) -> None:
        task = self._task
        assert task is not None
        self._pause = None
        now = self._world.now
        task.began, task.is_sent = now, False
        target = self._aim.target
        if self._connection is None or self._connected_to != target:
            self._disconnect()
            end = self._end = _End(self)
            self._connected_to = target
            self._connection = self._world.network.connect(self._place, target, end)
            self._connection.send(Knock())
        if self._is_greeted:
            self._send()
        else:
            patience_us = task.deadline - now
            if not self._is_pinned:
                patience_us = min(patience_us, CONNECT_TIMEOUT_US)
            task.timer = self._world.after(patience_us, self._not_greeted)

    def _send(self) -> None:
        task = self._task
        assert task is not None
        assert self._connection is not None
        if task.timer is not None:
            task.timer.cancel()
        remaining_us = task.deadline - self._world.now
        self._sent_count += 1
        node_timeout_us = max(remaining_us - NODE_HEADSTART_US, remaining_us // 2)
        operation = task.operation
        task.is_sent = True
        task.timer = self._world.after(remaining_us, self._timed_out)
        self._connection.send(
            ClientRequest(
                id=self._sent_count,
                kind=REQUEST_KINDS[operation.f],
                key=operation.key or "",
                value=operation.value,
                operation=f"{self._name}-{self._sent_count}",
                timeout_ms=max(1, node_timeout_us // 1_000),
            )
        )

    def hear(self, end: "_End", message: Any) -> None:
        """Something came on a connection, maybe on one that was dropped since."""
        if end is not self._end:
            return
        task = self._task
        if isinstance(message, Greeting):
            self._is_greeted = True
            if task is not None and not task.is_sent:
                self._send()
        elif (
            isinstance(message, ClientAnswer)
            and task is not None
            and task.is_sent
            and message.id == self._sent_count
        ):
            hint = None if message.leader_id is None else node_name(message.leader_id)
            node = self._connected_to
            assert node is not None
            self._concluded(
                answered(task.operation, message, node),
                hint if hint is not None and self._aim.knows(hint) else None,
            )

    def hear_of_loss(self, end: "_End") -> None:
        """A connection is gone, maybe one that was dropped since."""
        if end is not self._end:
            return
        task, node = self._task, self._connected_to
        self._disconnect()
        if task is None or self._pause is not None:
            return
        assert node is not None
        if task.is_sent:
            self._concluded(unanswered(task.operation, LOST, node), None)
        else:
            self._concluded(certainly_not(NOT_SENT, node), None)

    def _not_greeted(self) -> None:
        task, node = self._task, self._connected_to
        assert task is not None
        assert node is not None
        if self._world.now - task.began >= CONNECT_TIMEOUT_US:
            self._aim.avoid(node, self._world.now)
        self._disconnect()
        self._concluded(certainly_not(NOT_SENT, node), None)

    def _timed_out(self) -> None:
        task, node = self._task, self._connected_to
        assert task is not None
        assert node is not None
        self._disconnect()
        self._concluded(unanswered(task.operation, TIMED_OUT, node), None)

    # What follows.

    def _concluded(self, completion: Completion, hint: NodeName | None) -> None:
        task = self._task
        assert task is not None
        if task.timer is not None:
            task.timer.cancel()
        if self._is_pinned or not may_go_on(task.operation, completion):
            if completion.type == "info":
                self._disconnect()
            self._task = None
            task.done(completion)
            return
        self._disconnect()
        pause_us = ROUND_PAUSE_US if self._aim.aim_elsewhere(hint, self._world.now) else 0
        if self._world.now + max(pause_us, ROUND_PAUSE_US) >= task.deadline:
            self._task = None
            task.done(certainly_not(NO_LEADER, completion.node))
            return
        self._pause = self._world.after(pause_us, self._attempt)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._end = self._connected_to = None
        self._is_greeted = False

    def _stop_timers(self) -> None:
        if self._task is not None and self._task.timer is not None:
            self._task.timer.cancel()
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None


class _End:
    """One connection's end; implements ``contracts.simulation.ClientEnd``."""

    def __init__(self, client: SimulatedKraftClient) -> None:
        self._client = client

    def answered(self, message: Any) -> None:
        """The node sent something."""
        self._client.hear(self, message)

    def lost(self, reason: str, *, refused: bool) -> None:
        """The connection is gone; whether anything was sent, the client knows itself."""
        del reason, refused
        self._client.hear_of_loss(self)
