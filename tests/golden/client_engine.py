"""Carries out stories of the quorum's client: the one part that knows who drives it.

``on_the_machine`` has the client of real runs, from its connections' bytes up, on an event loop in
virtual time; ``in_a_world`` has that of simulated worlds. Whoever takes their place has functions
of the same kind; stories and golden files stay.
"""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion
from splitbrain.contracts.runtime import Address
from splitbrain.contracts.simulation import ClientEnd
from splitbrain.nodes.transport.client_protocol import (
    PROTOCOL_VERSION,
    ClientAnswer,
    FrameSplitter,
    Hello,
    decode_request,
    encode_frame,
)
from splitbrain.simulation.kraft.client import SimulatedKraftClient
from splitbrain.simulation.kraft.messages import Greeting, Knock
from splitbrain.simulation.world.world import Pending, Scheduler, SimulatedWorld
from splitbrain.systems.kraft.client import KraftClient
from tests.golden.client_nodes import Link, StoryNodes, Tape
from tests.golden.client_story import NODES, Call, ClientStory, Opening
from tests.golden.virtual_loop import VirtualLoop

#: After the last operation, and after the client was closed: what still comes is told to nobody.
_CALM_MS = 1_500
#: Less than a microsecond in all, and enough that no rounding of floats decides what is over.
_LATE_S = 1e-10
#: A world's client that is closed amid an operation tells nobody of it; so much later the next.
_UNTOLD_MS = 1


def on_the_machine(story: ClientStory) -> list[str]:
    """The story with the client of real runs."""
    loop = _StoryLoop(_LATE_S)
    tape = Tape(story, lambda: loop.now_us)
    loop.nodes = StoryNodes(story, tape, lambda ms, action: loop.call_later(ms / 1_000, action))
    try:
        loop.run_until_complete(_calls(story, tape, loop))
    finally:
        loop.close()
    return tape.lines


async def _calls(story: ClientStory, tape: Tape, loop: "_StoryLoop") -> None:
    client = KraftClient(lambda node: Address(node, 1), NODES, story.route)
    for call in story.calls:
        await asyncio.sleep(call.pause_ms / 1_000)
        tape.invoked(call.operation, call.timeout_ms)
        task = loop.create_task(client.invoke(call.operation, call.timeout_ms / 1_000))
        if call.given_up_ms is not None:
            loop.call_later(call.given_up_ms / 1_000, _give_up, tape, task)
        if call.closed_ms is not None:
            await asyncio.sleep(call.closed_ms / 1_000)
            tape.tell("close")
            await client.close()
        try:
            tape.completed(await task)
        except asyncio.CancelledError:
            await client.close()
    await asyncio.sleep(_CALM_MS / 1_000)
    tape.tell("close")
    await client.close()
    await asyncio.sleep(_CALM_MS / 1_000)


def _give_up(tape: Tape, task: "asyncio.Task[Completion]") -> None:
    tape.tell("give up")
    task.cancel()


class _StoryLoop(VirtualLoop):
    """An event loop whose connections lead to the nodes of a story."""

    nodes: StoryNodes

    async def create_connection(self, protocol_factory: Any, host: Any, port: Any) -> Any:  # type: ignore[override]
        link = self.nodes.connect(NodeName(host))
        opening = link.meeting.opening
        if opening in ("refused", "unaccepted"):
            refusal = _Refusal(self)
            link.opened(refusal)
            try:
                await refusal.refused
            finally:
                link.dropped()
        protocol = protocol_factory()
        transport = _Transport(self, link, protocol)
        link.opened(transport)
        protocol.connection_made(transport)
        return transport, protocol


class _Refusal:
    """The opener of a connection that nobody accepts."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.refused: asyncio.Future[None] = loop.create_future()

    def greeted(self, opening: Opening) -> None:
        raise AssertionError(opening)

    def answered(self, answer: ClientAnswer | None) -> None:
        raise AssertionError(answer)

    def lost(self) -> None:
        self.refused.set_exception(ConnectionRefusedError("nobody listens"))


class _Transport:
    """The transport of one connection, and its opener as the node sees it."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, link: Link, protocol: asyncio.Protocol
    ) -> None:
        self._loop = loop
        self._link = link
        self._protocol = protocol
        self._splitter = FrameSplitter()
        self._is_closing = False

    def write(self, data: bytes) -> None:
        assert not self._is_closing
        for body in self._splitter.feed(data):
            self._link.asked(decode_request(body))

    def is_closing(self) -> bool:
        return self._is_closing

    def abort(self) -> None:
        self._link.dropped()
        self._end()

    def greeted(self, opening: Opening) -> None:
        version = PROTOCOL_VERSION + (opening == "stranger")
        hello = encode_frame(Hello(version, 1, 0))
        self._protocol.data_received(b"\xff" * 9 if opening == "garbage" else hello)

    def answered(self, answer: ClientAnswer | None) -> None:
        self._protocol.data_received(b"\xff" * 9 if answer is None else encode_frame(answer))

    def lost(self) -> None:
        self._end()

    def _end(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._loop.call_soon(self._protocol.connection_lost, None)


def in_a_world(story: ClientStory) -> list[str]:
    """The story with the client of simulated worlds."""
    world = _StoryWorld(story)
    client = SimulatedKraftClient(cast(SimulatedWorld, world), "c0", "c0.1", NODES, story.route)
    tape = world.tape

    def close() -> None:
        tape.tell("close")
        client.close()

    def call(number: int) -> None:
        if number == len(story.calls):
            world.after_ms(_CALM_MS, close)
            return
        world.after_ms(story.calls[number].pause_ms, lambda: begin(number, story.calls[number]))

    def begin(number: int, it: Call) -> None:
        def done(completion: Completion) -> None:
            told.append(completion)
            tape.completed(completion)
            call(number + 1)

        def close_amid() -> None:
            close()
            if not told:
                world.after_ms(_UNTOLD_MS, lambda: call(number + 1))

        told: list[Completion] = []
        tape.invoked(it.operation, it.timeout_ms)
        client.invoke(it.operation, round(it.timeout_ms * 1_000), done)
        if it.closed_ms is not None:
            world.after_ms(it.closed_ms, close_amid)

    call(0)
    world.scheduler.run(60_000_000)
    return tape.lines


class _StoryWorld:
    """A clock and a network that leads to the nodes of a story."""

    def __init__(self, story: ClientStory) -> None:
        self.scheduler = Scheduler()
        self.tape = Tape(story, lambda: self.scheduler.now)
        self.network = self
        self._nodes = StoryNodes(story, self.tape, self.after_ms)

    @property
    def now(self) -> int:
        return self.scheduler.now

    def after(self, delay_us: int, action: Callable[[], None]) -> Pending:
        return self.scheduler.after(delay_us, action)

    def after_ms(self, delay_ms: float, action: Callable[[], None]) -> Pending:
        return self.scheduler.after(round(delay_ms * 1_000), action)

    def connect(self, source: str, place: NodeName, client: ClientEnd) -> "_WorldConnection":
        assert source == "c0"
        return _WorldConnection(self._nodes.connect(place), client)


class _WorldConnection:
    """One connection of a world: the client's end, and the opener as the node sees it."""

    def __init__(self, link: Link, client: ClientEnd) -> None:
        self._link = link
        self._client = client

    def send(self, message: Any) -> None:
        if isinstance(message, Knock):
            self._link.opened(self)
        else:
            self._link.asked(message)

    def close(self) -> None:
        self._link.dropped()

    def greeted(self, opening: Opening) -> None:
        assert opening == "greets", "messages of a world are never garbled"
        self._client.answered(Greeting())

    def answered(self, answer: ClientAnswer | None) -> None:
        assert answer is not None, "messages of a world are never garbled"
        self._client.answered(answer)

    def lost(self) -> None:
        self._client.lost("reset", refused=self._link.meeting.opening == "refused")
