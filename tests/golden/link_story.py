"""A story of a link to a peer: what its owner does, and how the peer meets it. Data alone."""

from typing import Literal

import msgspec

#: Whose requests: the quorum's, or those to a controller, of brokers and of other controllers.
Codec = Literal["quorum", "control"]
CODECS: tuple[Codec, ...] = ("quorum", "control")

#: How an attempt to connect ends. ``accepted``: the link knows it a turn after the connection is
#: made; ``unaccepted``: never.
Opening = Literal["accepted", "refused", "unreachable", "unaccepted"]

#: Acts of a peer. ``answer``: what the frame asks for. ``refusal``: the peer
#: does not know this version of the question for versions; ``refused``: it does not tell them.
#: ``misnumbered``: the answer to another request. ``garbage``: a frame that is no answer.
#: ``empty``: a frame of no byte. ``too-long``: a frame that announces too much. ``half``: half of
#: the answer. ``closed``, ``reset``: the end of the connection.
Word = Literal[
    "answer",
    "refusal",
    "refused",
    "misnumbered",
    "garbage",
    "empty",
    "too-long",
    "half",
    "closed",
    "reset",
]


class Reply(msgspec.Struct, frozen=True):
    """Outcome of one frame; without words there is none."""

    words: tuple[Word, ...] = ("answer",)
    after_ms: float = 1.1
    #: Between two words; None: all come in one read.
    between_ms: float | None = None
    #: In how many reads the bytes of a word come at most, a tenth of a ms apart.
    parts_count: int = 1


class Meeting(msgspec.Struct, frozen=True):
    """How the peer meets one attempt to connect."""

    opening: Opening = "accepted"
    after_ms: float = 0.7
    #: To its frames, in turn; the last one to all that follow.
    replies: tuple[Reply, ...] = (Reply(),)
    #: API key, lowest and highest version that it tells; None: all that this release serves.
    serves: tuple[tuple[int, int, int], ...] | None = None


class Ask(msgspec.Struct, frozen=True):
    """The owner sends a request; requests are numbered from 1 in the order of a story."""

    at_ms: float = 0.0
    timeout_ms: int = 90
    #: ``second`` is of another API than ``plain``; ``strict`` may go in the newest version alone.
    request: Literal["plain", "second", "strict"] = "plain"
    #: Sent while the owner is told of this request instead of at a time.
    amid: int | None = None


class Abandon(msgspec.Struct, frozen=True):
    """The owner gives a request up."""

    at_ms: float
    number: int = 1
    #: Turns of the loop after the moment; 0: in the turn in which a request of that moment is sent.
    turns_count: int = 0


class Close(msgspec.Struct, frozen=True):
    """The owner closes the link."""

    at_ms: float
    turns_count: int = 0


Step = Ask | Abandon | Close


class LinkStory(msgspec.Struct, frozen=True):
    """One link and the peer that it leads to."""

    name: str
    codec: Codec
    steps: tuple[Step, ...] = (Ask(),)
    #: The attempts to connect, in turn; the last one is how all that follow are met.
    meetings: tuple[Meeting, ...] = (Meeting(),)
