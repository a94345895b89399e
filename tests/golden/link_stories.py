"""The stories of a link: each state in which something may end it, and each thing a peer may say.

No moment is a whole number of milliseconds, so that no rounding shows.
"""

from collections.abc import Sequence
from typing import Final

from splitbrain.nodes.wire.apis import ApiKey
from tests.golden.link_story import (
    CODECS,
    Abandon,
    Ask,
    Close,
    Codec,
    LinkStory,
    Meeting,
    Reply,
    Step,
    Word,
)

_HEALTHY: Final = Meeting()
_REFUSED: Final = Meeting("refused")
_NEVER: Final = Reply(())
#: The question for versions is answered, and then so.
_ANSWER: Final = Reply()
#: Behind all that one request can take.
_NEXT_MS: Final = 200.3
_SERVED: Final = tuple(
    (int(key), 0, 1) for key in (ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.BROKER_HEARTBEAT)
)


def _says(*words: Word) -> Meeting:
    """The request is met so."""
    return Meeting(replies=(_ANSWER, Reply(words), _ANSWER))


def _tells(*words: Word) -> Meeting:
    """The question for versions is met so."""
    return Meeting(replies=(Reply(words), _ANSWER))


def _asks(*times_ms: float, timeout_ms: int = 90) -> tuple[Ask, ...]:
    return tuple(Ask(at_ms, timeout_ms) for at_ms in times_ms)


def _many(count: int, apart_ms: float = _NEXT_MS, timeout_ms: int = 90) -> tuple[Ask, ...]:
    return _asks(*(number * apart_ms for number in range(count)), timeout_ms=timeout_ms)


_AGAIN: Final = _asks(0, _NEXT_MS)
_AMID: Final = (Ask(), Ask(amid=1), Ask(at_ms=_NEXT_MS))
#: Name, what the owner does, how the peer meets the attempts to connect.
_Told = tuple[str, Sequence[Step], Sequence[Meeting]]

_COURSES: Final[Sequence[_Told]] = (
    ("one request", (Ask(),), (_HEALTHY,)),
    ("one connection serves all", (*_many(3), Ask(700.3, request="second")), (_HEALTHY,)),
    ("asked again as soon as it is answered", _AMID, (_HEALTHY,)),
    ("two at a time", (Ask(), Ask()), (_HEALTHY,)),
    ("two at a time, the first is under way", _asks(0, 2.5), (_HEALTHY,)),
    ("it breaks at rest", _AGAIN, (Meeting(replies=(_ANSWER, Reply(("answer", "closed")))),)),
    ("it is reset at rest", _AGAIN, (Meeting(replies=(_ANSWER, Reply(("answer", "reset")))),)),
    (
        "it breaks as the next is sent",
        _AMID,
        (Meeting(replies=(_ANSWER, Reply(("answer", "closed")))), _HEALTHY),
    ),
    (
        "it breaks a moment later",
        _asks(0, 6.3),
        (Meeting(replies=(_ANSWER, Reply(("answer", "reset"), between_ms=3.3))), _HEALTHY),
    ),
    ("the owner closes, and asks again", (Ask(), Close(40.3), Ask(60.3)), (_HEALTHY,)),
    ("closed before it is ever used", (Close(1.3), Ask(2.3)), (_HEALTHY,)),
    ("closed twice", (Ask(), Close(2.5), Close(2.7)), (_HEALTHY,)),
    ("another is abandoned", (Ask(), Abandon(2.5, number=9)), (_HEALTHY,)),
    ("abandoned at rest", (Ask(), Abandon(40.3), Ask(60.3)), (_HEALTHY,)),
)

_BACK_OFF: Final[Sequence[_Told]] = (
    ("nobody listens", _many(9), (_REFUSED,)),
    ("nobody listens, little time", _many(6, timeout_ms=7), (_REFUSED,)),
    ("nobody listens, one millisecond", _many(3, timeout_ms=1), (_REFUSED,)),
    (
        "nobody listens, asked again at once",
        (Ask(), *(Ask(amid=n) for n in range(1, 7))),
        (_REFUSED,),
    ),
    ("no way there", _many(4), (Meeting("unreachable"),)),
    ("nobody accepts", _many(4), (Meeting("unaccepted"),)),
    ("nobody listens, then all is well", _many(4), (_REFUSED, _REFUSED, _HEALTHY)),
    (
        "a connection forgives",
        _many(5),
        (_REFUSED, _REFUSED, Meeting(replies=(Reply(("closed",)),)), _REFUSED, _HEALTHY),
    ),
    (
        "a connection on which nothing is answered forgives too",
        _many(5),
        (_REFUSED, _REFUSED, Meeting(replies=(_NEVER,)), _HEALTHY),
    ),
    (
        "given up in the pause it is no attempt",
        (*_asks(0, _NEXT_MS), Abandon(205.3, 2), Ask(400.3), Abandon(405.3, 3), Ask(600.3)),
        (_REFUSED, _REFUSED, _HEALTHY),
    ),
    (
        "given up before it begins it is no attempt",
        (Ask(), Abandon(0, 1), Ask(10.3), Abandon(10.3, 2), Ask(20.3)),
        (_HEALTHY,),
    ),
    (
        "given up as it begins it is one",
        (Ask(), Abandon(0, 1, turns_count=2), Ask(10.3)),
        (_HEALTHY,),
    ),
    (
        "slow connections that are given up add up",
        (Ask(), Abandon(2.3, 1), Ask(100.3), Abandon(113.3, 2), Ask(200.3)),
        (Meeting(after_ms=5.3),),
    ),
)

#: The states of a request, and when it is in them.
_STATES: Final[Sequence[tuple[str, Sequence[Meeting], float]]] = (
    ("before the attempt begins", (_HEALTHY,), 0.0),
    ("in the pause before it", (_REFUSED, _HEALTHY), 5.3),
    ("while connecting", (Meeting("unaccepted"), _HEALTHY), 5.3),
    ("while connecting slowly", (Meeting(after_ms=30.3), _HEALTHY), 5.3),
    ("before the versions", (Meeting(replies=(_NEVER,)), _HEALTHY), 5.3),
    ("amid the versions", (_tells("half"), _HEALTHY), 5.3),
    ("asked for versions again", (Meeting(replies=(Reply(("refusal",)), _NEVER)), _HEALTHY), 5.3),
    ("after the request", (Meeting(replies=(_ANSWER, _NEVER)), _HEALTHY), 5.3),
    ("amid the answer", (_says("half"), _HEALTHY), 5.3),
    ("with the answer on its way", (Meeting(replies=(_ANSWER, Reply(after_ms=20.3))),), 5.3),
)


def _ends() -> Sequence[_Told]:
    """In each state: the time is over, it is given up, the link is closed; then another one."""
    told: list[_Told] = []
    for state, meetings, in_ms in _STATES:
        first: tuple[Step, ...] = (Ask(),)
        at_ms, number = 0.0, 1
        if meetings[0] is _REFUSED:
            first, at_ms, number = (*first, Ask(_NEXT_MS)), _NEXT_MS, 2
        over = tuple(
            Ask(step.at_ms, round(in_ms) or 1) if isinstance(step, Ask) else step for step in first
        )
        moment, then = at_ms + in_ms, at_ms + _NEXT_MS
        told += [
            (f"{state}: the time is over", (*over, Ask(then)), meetings),
            (f"{state}: and asked again", (*over, Ask(amid=number)), meetings),
            (f"{state}: abandoned", (*first, Abandon(moment, number), Ask(then)), meetings),
            (
                f"{state}: abandoned, and asked in its place",
                (*first, Abandon(moment, number), Ask(moment)),
                meetings,
            ),
            (f"{state}: closed", (*first, Close(moment), Ask(then)), meetings),
        ]
    return told


#: Turns of the loop in which a connection is asked for, made, and known to the link.
_TURNS: Final = range(8)


def _turns() -> Sequence[_Told]:
    """Given up and closed in each turn of the moment in which a connection is made."""
    meetings = (Meeting(after_ms=0.0),)
    return [
        (f"{what.lower()} after {count} turns", steps, meetings)
        for count in _TURNS
        for what, steps in (
            ("Abandoned", (Ask(), Abandon(0.0, turns_count=count), Ask(20.3))),
            ("Closed", (Ask(), Close(0.0, turns_count=count), Ask(20.3))),
        )
    ]


_VERSIONS: Final[Sequence[_Told]] = (
    ("told in parts", _AGAIN, (Meeting(replies=(Reply(parts_count=3), _ANSWER)),)),
    ("told byte by byte", _AGAIN, (Meeting(replies=(Reply(parts_count=400), _ANSWER)),)),
    ("asked again in an older version", _AGAIN, (_tells("refusal"),)),
    (
        "asked again in parts",
        _AGAIN,
        (Meeting(replies=(Reply(("refusal",), parts_count=4), Reply(parts_count=4), _ANSWER)),),
    ),
    ("refused in every version", _AGAIN, (Meeting(replies=(Reply(("refusal",)),)), _HEALTHY)),
    ("not told to this node", _AGAIN, (_tells("refused"), _HEALTHY)),
    ("told to another question", _AGAIN, (_tells("misnumbered"), _HEALTHY)),
    ("told in garbage", _AGAIN, (_tells("garbage"), _HEALTHY)),
    ("told in nothing", _AGAIN, (_tells("empty"), _HEALTHY)),
    ("told in too much", _AGAIN, (_tells("too-long"), _HEALTHY)),
    ("never told", _AGAIN, (Meeting(replies=(_NEVER,)), _HEALTHY)),
    ("told too late", _AGAIN, (Meeting(replies=(Reply(after_ms=120.3), _ANSWER)), _HEALTHY)),
    ("told twice", _AGAIN, (_tells("answer", "answer"), _HEALTHY)),
    ("told twice, apart", _AGAIN, (Meeting(replies=(Reply(("answer", "answer"), 1.1, 0.3),)),)),
    ("told, and then garbage", _AGAIN, (_tells("answer", "garbage"), _HEALTHY)),
    ("told, and then too much", _AGAIN, (_tells("answer", "too-long"), _HEALTHY)),
    ("told, and closed", _AGAIN, (_tells("answer", "closed"), _HEALTHY)),
    ("closed instead", _AGAIN, (_tells("closed"), _HEALTHY)),
    ("reset instead", _AGAIN, (_tells("reset"), _HEALTHY)),
    ("half told, and reset", _AGAIN, (_tells("half", "reset"), _HEALTHY)),
    ("an older peer", (*_AGAIN, Ask(400.3, request="second")), (Meeting(serves=_SERVED),)),
    ("a peer that serves nothing", _AGAIN, (Meeting(serves=()), _HEALTHY)),
    (
        "none for this request",
        (Ask(request="strict"), Ask(_NEXT_MS), Ask(400.3, request="strict"), Ask(600.3)),
        (Meeting(serves=_SERVED),),
    ),
    (
        "none for this request, asked again amid that",
        (Ask(), Ask(40.3, request="strict"), Ask(amid=2)),
        (Meeting(serves=_SERVED), _HEALTHY),
    ),
    (
        "none for this request, sent amid an answer",
        (Ask(), Ask(amid=1, request="strict"), Ask(_NEXT_MS)),
        (Meeting(serves=_SERVED),),
    ),
    (
        "none for this request, given up before it is told",
        (Ask(), Ask(40.3, request="strict"), Abandon(40.3, 2), Ask(60.3)),
        (Meeting(serves=_SERVED),),
    ),
    (
        "none for this request, another in its place before it is told",
        (Ask(), Ask(40.3, request="strict"), Abandon(40.3, 2), Ask(40.3)),
        (Meeting(serves=_SERVED),),
    ),
    (
        "none for this request, closed before it is told",
        (Ask(), Ask(40.3, request="strict"), Close(40.3)),
        (Meeting(serves=_SERVED),),
    ),
    (
        "none for this request, and the connection breaks before that is told",
        (Ask(), Ask(amid=1, request="strict"), Ask(_NEXT_MS)),
        (Meeting(replies=(_ANSWER, Reply(("answer", "closed"))), serves=_SERVED), _HEALTHY),
    ),
    (
        "the peer is upgraded between two connections",
        (Ask(request="strict"), Ask(_NEXT_MS, request="strict")),
        (Meeting(serves=_SERVED), _HEALTHY),
    ),
)

_ANSWERS: Final[Sequence[_Told]] = (
    ("in parts", _AGAIN, (Meeting(replies=(_ANSWER, Reply(parts_count=3))),)),
    ("byte by byte", _AGAIN, (Meeting(replies=(_ANSWER, Reply(parts_count=99))),)),
    ("twice in one read", _AGAIN, (_says("answer", "answer"),)),
    ("twice in one read, asked again amid", _AMID, (_says("answer", "answer"), _HEALTHY)),
    ("thrice in one read", _AGAIN, (_says("answer", "answer", "answer"),)),
    (
        "and what nobody asked for, later",
        _AGAIN,
        (Meeting(replies=(_ANSWER, Reply(("answer", "answer"), 1.1, 20.3))),),
    ),
    (
        "and garbage, later",
        _AGAIN,
        (Meeting(replies=(_ANSWER, Reply(("answer", "garbage"), 1.1, 20.3))),),
    ),
    (
        "and too much, later",
        _AGAIN,
        (Meeting(replies=(_ANSWER, Reply(("answer", "too-long"), 1.1, 20.3))),),
    ),
    (
        "and half an answer, later",
        _AGAIN,
        (Meeting(replies=(_ANSWER, Reply(("answer", "half"), 1.1, 20.3))),),
    ),
    ("and too much in one read", _AGAIN, (_says("answer", "too-long"), _HEALTHY)),
    ("and half an answer in one read", _AGAIN, (_says("answer", "half"), _HEALTHY)),
    ("to another request", _AGAIN, (_says("misnumbered"), _HEALTHY)),
    ("to another request, then its own", _AGAIN, (_says("misnumbered", "answer"), _HEALTHY)),
    ("to another request, asked again amid", _AMID, (_says("misnumbered"), _HEALTHY)),
    ("garbage", _AGAIN, (_says("garbage"), _HEALTHY)),
    ("nothing", _AGAIN, (_says("empty"), _HEALTHY)),
    ("too much", _AGAIN, (_says("too-long"), _HEALTHY)),
    ("closed instead", _AGAIN, (_says("closed"), _HEALTHY)),
    ("closed instead, asked again amid", _AMID, (_says("closed"), _HEALTHY)),
    ("reset instead", _AGAIN, (_says("reset"), _HEALTHY)),
    ("half of it, and reset", _AGAIN, (_says("half", "reset"), _HEALTHY)),
    ("never, thrice", _many(4), (Meeting(replies=(_ANSWER, _NEVER)),)),
    (
        "right before the time is over",
        _AGAIN,
        (Meeting(after_ms=0.3, replies=(Reply(after_ms=0.3), Reply(after_ms=89.3))),),
    ),
    (
        "right after the time is over",
        _AGAIN,
        (Meeting(after_ms=0.3, replies=(Reply(after_ms=0.3), Reply(after_ms=89.5))),),
    ),
    (
        "closed right after the time is over",
        _AGAIN,
        (Meeting(after_ms=0.3, replies=(Reply(after_ms=0.3), Reply(("closed",), 89.5))),),
    ),
)

_FAMILIES: Final = {
    "courses": _COURSES,
    "back_off": _BACK_OFF,
    "ends": _ends(),
    "turns": _turns(),
    "versions": _VERSIONS,
    "answers": _ANSWERS,
}


def _stories(codec: Codec, told: Sequence[_Told]) -> Sequence[LinkStory]:
    return [
        LinkStory(f"{name}: {codec}", codec, tuple(steps), tuple(meetings))
        for name, steps, meetings in told
    ]


#: By the golden file in which they are.
LINK_STORIES: Final = {
    f"{family}_{codec}": _stories(codec, told)
    for family, told in _FAMILIES.items()
    for codec in CODECS
}
