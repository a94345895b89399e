"""Carries out stories of a link: the one part that knows who drives it.

``on_the_machine`` has the link of real nodes, from its connections' bytes up, on an event loop in
virtual time. Whoever takes its place has a function of the same kind; stories and golden files
stay.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from splitbrain.nodes.quorum.identifiers import CorrelationId, NodeId
from splitbrain.nodes.transport.kafka_codec import KafkaCodec
from splitbrain.nodes.transport.peer_link import PeerLink
from tests.golden.link_peer import ME, REQUESTS, VOTER, Line, Tape
from tests.golden.link_story import Abandon, Ask, Close, LinkStory, Step
from tests.golden.virtual_loop import VirtualLoop

#: After the last step, and after the link was closed: what still comes is told to nobody.
_CALM_MS = 1_500
#: Less than a microsecond in all, and enough that no rounding of floats decides what is over.
_LATE_S = 1e-10


def on_the_machine(story: LinkStory) -> list[str]:
    """The story with the link of real nodes."""
    loop = _StoryLoop(_LATE_S)
    tape = Tape(story, lambda: loop.now_us)
    loop.connect = lambda number: Line(
        story, number, tape, lambda ms, action: loop.call_later(ms / 1_000, action)
    )
    try:
        loop.run_until_complete(_Owner(story, tape, loop).live())
    finally:
        loop.close()
    return tape.lines


class _Owner:
    """Sends the requests of a story, and is told what came of them."""

    def __init__(self, story: LinkStory, tape: Tape, loop: VirtualLoop) -> None:
        self._story = story
        self._tape = tape
        self._loop = loop
        codec = KafkaCodec(ME, (VOTER,))
        self._link: PeerLink[Any, Any] = PeerLink(VOTER, codec, self)

    async def live(self) -> None:
        number, moments = 0, dict[float, list[Callable[[], None]]]()
        for step in self._story.steps:
            number += isinstance(step, Ask)
            if not isinstance(step, Ask) or step.amid is None:
                moments.setdefault(step.at_ms, []).append(self._action(step, number))
        for at_ms, actions in moments.items():
            self._loop.call_later(at_ms / 1_000, _do_all, actions)
        await asyncio.sleep((max(moments) + _CALM_MS) / 1_000)
        self._close()
        await asyncio.sleep(_CALM_MS / 1_000)

    def _action(self, step: Step, number: int) -> Callable[[], None]:
        match step:
            case Ask():
                return lambda: self._ask(step, number)
            case Abandon():
                return lambda: self._in_turns(step.turns_count, lambda: self._abandon(step.number))
            case Close():
                return lambda: self._in_turns(step.turns_count, self._close)

    def _in_turns(self, count: int, action: Callable[[], None]) -> None:
        if count:
            self._loop.call_soon(self._in_turns, count - 1, action)
        else:
            action()

    def _ask(self, ask: Ask, number: int) -> None:
        request = REQUESTS[self._story.codec][ask.request]
        self._tape.tell(f"ask #{number} {type(request).__name__} for {ask.timeout_ms} ms")
        try:
            self._link.send(CorrelationId(number), request, ask.timeout_ms)
        except RuntimeError as error:
            self._tape.tell(f"cannot ask: {error}")
        else:
            self._tape.tell(f"asked #{number}{self._idle()}")

    def _abandon(self, number: int) -> None:
        self._tape.tell(f"abandon #{number}")
        self._link.abandon(CorrelationId(number))
        self._tape.tell(f"abandoned #{number}{self._idle()}")

    def _close(self) -> None:
        self._tape.tell("close")
        self._link.close()
        self._tape.tell(f"closed{self._idle()}")

    def _idle(self) -> str:
        return ", idle" * self._link.is_idle

    def answered(self, peer: NodeId, correlation: CorrelationId, answer: Any) -> None:
        self._tape.tell(f"#{correlation} answered by {peer}{self._idle()}: {answer}")
        self._ask_amid(correlation)

    def failed(
        self, peer: NodeId, correlation: CorrelationId, reason: str, *, refused: bool
    ) -> None:
        words = "refused" if refused else "failed"
        self._tape.tell(f"#{correlation} {words} by {peer}{self._idle()}: {reason}")
        self._ask_amid(correlation)

    def _ask_amid(self, told: int) -> None:
        asks = [step for step in self._story.steps if isinstance(step, Ask)]
        for number, ask in enumerate(asks, start=1):
            if ask.amid == told:
                self._ask(ask, number)


def _do_all(actions: Sequence[Callable[[], None]]) -> None:
    for action in actions:
        action()


class _StoryLoop(VirtualLoop):
    """An event loop whose connections lead to the peer of a story."""

    connect: Callable[[int], Line]
    _attempts_count = 0

    async def create_connection(self, protocol_factory: Any, host: Any, port: Any) -> Any:  # type: ignore[override]
        self._attempts_count += 1
        line = self.connect(self._attempts_count)
        line.tell(f"connect to {host}:{port}")
        try:
            if line.meeting.opening == "unaccepted":
                await self.create_future()
            await asyncio.sleep(line.meeting.after_ms / 1_000)
        except asyncio.CancelledError:
            line.dropped()
            raise
        if line.meeting.opening == "refused":
            raise ConnectionRefusedError(111, "nobody listens")
        if line.meeting.opening == "unreachable":
            raise OSError(113, "no route to host")
        line.tell("accepted")
        protocol = protocol_factory()
        transport = _Transport(self, line, protocol)
        line.opener = transport
        protocol.connection_made(transport)
        try:
            # As on a real loop: who asked for the connection hears of it a turn later.
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            transport.abort()
            raise
        return transport, protocol


class _Transport:
    """The transport of one connection."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, line: Line, protocol: asyncio.Protocol
    ) -> None:
        self._loop = loop
        self._line = line
        self._protocol = protocol
        self._is_closing = False

    def write(self, data: bytes) -> None:
        assert not self._is_closing
        self._line.written(data)

    def abort(self) -> None:
        self._line.dropped()
        self._end(None)

    def read(self, data: bytes) -> None:
        self._protocol.data_received(data)

    def ended(self, error: OSError | None) -> None:
        self._end(error)

    def _end(self, error: OSError | None) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._loop.call_soon(self._protocol.connection_lost, error)
