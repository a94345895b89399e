"""Nodes as a story of the client has them, and the tape of all that happens to it.

They know neither sockets nor worlds: an engine gives them a clock and carries what they say.
"""

from collections import Counter
from collections.abc import Callable
from typing import Protocol

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.nodes.transport.client_protocol import ClientAnswer, ClientRequest
from tests.golden.client_story import ClientStory, Meeting, Opening, Reply

#: Runs an action so many milliseconds later.
Later = Callable[[float, Callable[[], None]], object]
_MS = 1_000
#: Number of a request that nobody ever asks.
_STRAY = 77
#: Characters of a value that are shown.
_SHOWN = 12


class Tape:
    """All that a client shows, a line each, with its time in ms."""

    def __init__(self, story: ClientStory, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self.lines = [f"## {story.name}"]

    def tell(self, words: str) -> None:
        self.lines.append(f"{self._now_us() / _MS:.10g} {words}")

    def invoked(self, operation: Operation, timeout_ms: float) -> None:
        value = repr(operation.value)[:_SHOWN]
        self.tell(f"invoke {operation.f} {operation.key}={value} for {timeout_ms:g} ms")

    def completed(self, completion: Completion) -> None:
        fields = msgspec.structs.asdict(completion)
        told = [f"{name} {value}" for name, value in fields.items() if value is not None]
        self.tell(" ".join(told))


class Opener(Protocol):
    """The client's end of a connection, as nodes reach it."""

    def greeted(self, opening: Opening) -> None:
        """The node's first words, or what comes in their place."""
        ...

    def answered(self, answer: ClientAnswer | None) -> None:
        """An answer; None: bytes that are none."""
        ...

    def lost(self) -> None:
        """The connection breaks."""
        ...


class Link:
    """A node's end of one connection."""

    def __init__(self, tape: Tape, later: Later, name: str, meeting: Meeting) -> None:
        self.meeting = meeting
        self._tape = tape
        self._later = later
        self._name = name
        self._opener: Opener | None = None
        self._is_over = False
        self._count = 0

    def opened(self, opener: Opener) -> None:
        """The client opens it."""
        self._opener = opener
        match self.meeting.opening:
            case "silent" | "unaccepted":
                return
            case "refused" | "lost":
                self._later(self.meeting.after_ms, self._break)
            case opening:
                self._later(
                    self.meeting.after_ms,
                    lambda: self._say("greets", lambda opener: opener.greeted(opening)),
                )

    def asked(self, request: ClientRequest) -> None:
        """The client sends a request."""
        _, _, number = request.operation.rpartition("-")
        words = f"{request.kind} {request.key}={request.value!r} operation {number}"
        self._tape.tell(f"{self._name} send #{request.id} {words} in {request.timeout_ms} ms")
        replies = self.meeting.replies
        reply = replies[min(self._count, len(replies) - 1)]
        self._count += 1
        if reply.outcome == "lost":
            self._later(reply.after_ms, self._break)
        elif reply.outcome != "never":
            self._later(reply.after_ms, lambda: self._reply(request, reply))

    def dropped(self) -> None:
        """The client drops it; nothing if it is over."""
        if not self._is_over:
            self._is_over = True
            self._tape.tell(f"{self._name} drop")

    def _reply(self, request: ClientRequest, reply: Reply) -> None:
        if reply.outcome == "garbage":
            self._say("garbage", lambda opener: opener.answered(None))
            return
        assert reply.outcome != "lost"
        assert reply.outcome != "never"
        answer = ClientAnswer(
            *(request.id, reply.outcome, reply.definite, reply.result, reply.leader, 3, 17)
        )
        if reply.stray:
            self._answer(msgspec.structs.replace(answer, id=_STRAY, result="stray"))
        self._answer(answer)
        if reply.then_lost_ms is not None:
            self._later(reply.then_lost_ms, self._break)

    def _answer(self, answer: ClientAnswer) -> None:
        words = f"answers #{answer.id} {answer.outcome} leader {answer.leader_id}"
        if not answer.definite:
            words += " (not certain)"
        self._say(words, lambda opener: opener.answered(answer))

    def _say(self, words: str, say: Callable[[Opener], None]) -> None:
        self._tape.tell(f"{self._name} {words}{' to nobody' * self._is_over}")
        if not self._is_over:
            assert self._opener is not None
            say(self._opener)

    def _break(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._tape.tell(f"{self._name} {'refuses' * self._was_refused or 'breaks'}")
        assert self._opener is not None
        self._opener.lost()

    @property
    def _was_refused(self) -> bool:
        return self.meeting.opening == "refused"


class StoryNodes:
    """All nodes of a story."""

    def __init__(self, story: ClientStory, tape: Tape, later: Later) -> None:
        self._story = story
        self._tape = tape
        self._later = later
        self._count: Counter[str] = Counter()

    def connect(self, node: NodeName) -> Link:
        """The next connection to a node."""
        meetings = self._story.meetings[node]
        number = self._count[node]
        self._count[node] += 1
        name = f"{node}.{self._count[node]}"
        self._tape.tell(f"{name} connect")
        return Link(self._tape, self._later, name, meetings[min(number, len(meetings) - 1)])
