"""The stories of the quorum's client: each ending, and each way from node to node.

No moment and no time that is left is a whole number of milliseconds, so that no rounding shows.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Operation
from splitbrain.contracts.system import Route
from splitbrain.nodes.transport.client_protocol import FRAME_SIZE_BYTES_MAX
from tests.golden.client_story import (
    LEADING,
    NODES,
    PINNED,
    READ,
    WRITE,
    Call,
    ClientStory,
    Meeting,
    Reply,
)

_N1, _N2, _N3 = NODES
_LEADS: Final = Meeting()
_SILENT: Final = Meeting("silent")
_NEVER: Final = Meeting(replies=(Reply("never"),))
#: Long enough for two rounds, and too short for a third.
_SHORT_MS: Final = 60.55
_SHORT: Final = (Call(timeout_ms=_SHORT_MS),)
#: Longer than a frame may be.
_UNSENDABLE: Final = Operation("write", "k", "v" * FRAME_SIZE_BYTES_MAX)


def _replies(*replies: Reply) -> Meeting:
    return Meeting(replies=replies)


#: Names the first node the leader.
_NOT_LEADING: Final = Reply("not-leader", leader=1)


def _follows(leader: int | None) -> Meeting:
    return _replies(Reply("not-leader", leader=leader))


def _story(
    name: str,
    *meetings: Meeting | tuple[Meeting, ...],
    route: Route = LEADING,
    calls: tuple[Call, ...] = (Call(),),
) -> ClientStory:
    """A story; nodes that are not mentioned lead."""
    told = (*meetings, *[_LEADS] * (len(NODES) - len(meetings)))
    met: Mapping[NodeName, tuple[Meeting, ...]] = {
        node: it if isinstance(it, tuple) else (it,) for node, it in zip(NODES, told, strict=True)
    }
    return ClientStory(name=name, route=route, calls=calls, meetings=met)


#: All that can become of one operation at the first node that is asked.
_ENDINGS: Final = {
    "ok": _LEADS,
    "refused with a hint": _follows(3),
    "refused without a hint": _follows(None),
    "refused, the hint is itself": _follows(1),
    "refused, the hint is an unknown node": _follows(9),
    "stopping": _replies(Reply("stopping")),
    "invalid": _replies(Reply("invalid-request")),
    "fenced": _replies(Reply("fenced")),
    "the node timed out": _replies(Reply("timeout", definite=False)),
    "the node timed out, nothing happened": _replies(Reply("timeout")),
    "the node does not know": _replies(Reply("unknown", definite=False, leader=3)),
    "nobody listens": Meeting("refused"),
    "broken before the greeting": Meeting("lost"),
    "nobody accepts": Meeting("unaccepted"),
    "nobody greets": _SILENT,
    "greeted slowly": Meeting(after_ms=150.3),
    "greeted too slowly for those that follow": Meeting(after_ms=250.3),
    "broken after sending": _replies(Reply("lost", 7.7)),
    "no answer": _NEVER,
    "answered right before the deadline": _replies(Reply(after_ms=999.3)),
    "answered right after the deadline": _replies(Reply(after_ms=999.5)),
    "broken right before the deadline": _replies(Reply("lost", 999.3)),
    "broken right after the deadline": _replies(Reply("lost", 999.5)),
    "greeted right before the deadline": Meeting(after_ms=999.3),
    "greeted right after the deadline": Meeting(after_ms=1000.7),
    "an answer to another request, and then its own": _replies(Reply(stray=True)),
}


def _first_time(meeting: Meeting) -> tuple[Meeting, ...]:
    """A node that meets its first request so, and leads from then on."""
    return msgspec.structs.replace(meeting, replies=(*meeting.replies, Reply())), _LEADS


def _endings(route: Route, operation: Operation) -> tuple[ClientStory, ...]:
    """Each ending, and another operation after it."""
    return tuple(
        _story(
            f"{name}: {operation.f}, {route.kind}",
            _first_time(meeting),
            route=route,
            calls=(Call(operation), Call(operation, pause_ms=30.3)),
        )
        for name, meeting in _ENDINGS.items()
    )


_KINDS: Final = tuple(
    _story(f"{operation.f}: {outcome}", _replies(Reply(result=outcome)), calls=(Call(operation),))
    for operation, outcomes in (
        (READ, (None, 7)),
        (Operation("cas", "k", [1, 2]), (True, False)),
        (Operation("add", "k", 3), (True,)),
        (Operation("read-set", None, None), ([1, 2],)),
        (Operation("create", "t", 4), (True, False)),
        (Operation("delete", "t", None), (True, False)),
        (Operation("describe", "t", None), (None, 4)),
        (Operation("view", "t", None), (None, 4)),
        (Operation("enqueue", "q", 1), (True,)),
    )
    for outcome in outcomes
)

#: From node to node, from round to round: each attempt has a connection of its own.
_ROUNDS: Final = (
    _story("the hint leads", _follows(3), _follows(3)),
    _story("the second has another hint", _follows(2), _follows(3)),
    _story("the third names the first", _follows(2), _follows(3), _follows(1), calls=_SHORT),
    _story("nobody leads", *[_follows(None)] * 3, calls=_SHORT),
    _story("nobody leads, a read", *[_follows(None)] * 3, calls=(Call(READ, _SHORT_MS),)),
    _story("nobody listens at all", *[Meeting("refused")] * 3, calls=_SHORT),
    _story("led by the third round", *[(_follows(None), _follows(None), _LEADS)] * 3),
    _story("led by the second round, as all say", *[(_follows(2), _LEADS)] * 3),
    _story("all are stopping", *[_replies(Reply("stopping"))] * 3, calls=_SHORT),
    _story("too late for another node", _replies(Reply("not-leader", 985.3))),
    _story("just in time for another node", _replies(Reply("not-leader", 975.3))),
    _story("too late for another round", *[_replies(Reply("not-leader", 325.3))] * 3),
    _story("two break amid a read", *[_replies(Reply("lost"))] * 2, calls=(Call(READ),)),
    _story("one refuses, one breaks amid a write", _follows(2), _replies(Reply("lost"))),
    _story("one is silent, the others name it", _SILENT, _follows(1), _follows(1)),
    _story("one is silent, and leads again", (_SILENT, _LEADS), _follows(1), _follows(1)),
    _story(
        "one is silent, and is left out by the next operations",
        *((_SILENT, _LEADS), (_replies(Reply(), _NOT_LEADING), _follows(1)), _follows(1)),
        calls=(Call(), Call(pause_ms=100.3), Call(READ, pause_ms=700.3)),
    ),
    _story("two are silent", _SILENT, _SILENT),
    _story("all are silent", *[_SILENT] * 3),
    _story("all are silent, and lead again", *[(_SILENT, _LEADS)] * 3),
    _story("nobody greets, and too short for patience", _SILENT, calls=(Call(timeout_ms=150.55),)),
    _story(
        "the operation after one without patience", _SILENT, calls=(Call(timeout_ms=90.55),) * 2
    ),
    _story("it begins at the third", route=Route("leader", _N3)),
    _story("it begins at the third, in turn", *[_follows(None)] * 3, route=Route("leader", _N3)),
    _story("none of the nodes", route=Route("pinned", _N2), calls=(Call(),) * 3),
)

_BREAKS_LATER: Final = _replies(Reply(then_lost_ms=5.3))
#: A connection serves all that follow, unless it was dropped or broke.
_REUSE: Final = (
    _story("one connection serves all", calls=(Call(), Call(READ), Call(pause_ms=2000.3))),
    _story("a pinned one too", route=PINNED, calls=(Call(), Call(READ), Call(pause_ms=2000.3))),
    _story("refused, and asked again", _follows(2), route=PINNED, calls=(Call(),) * 3),
    _story("it breaks between two", _BREAKS_LATER, calls=(Call(), Call(pause_ms=9.3))),
    _story(
        "it breaks between two, pinned", _BREAKS_LATER, route=PINNED, calls=(Call(), Call(READ))
    ),
    _story(
        "it breaks between two, and nobody listens",
        (_BREAKS_LATER, Meeting("refused")),
        calls=(Call(), Call(pause_ms=9.3)),
    ),
    _story(
        "the leader moves between two",
        (_replies(Reply(), Reply("not-leader", leader=2)), _follows(2)),
        calls=(Call(), Call()),
    ),
    _story(
        "the leader moves back between two",
        (_follows(2), _LEADS),
        _replies(Reply(), Reply("not-leader", leader=1)),
        calls=(Call(), Call()),
    ),
    _story(
        "the second is not answered",
        (_replies(Reply(), Reply("never")), _LEADS),
        calls=(Call(), Call(timeout_ms=110.55), Call()),
    ),
    _story("little time", calls=(Call(timeout_ms=90.55), Call(timeout_ms=1.7), Call())),
    _story("less than a millisecond", calls=(Call(), Call(timeout_ms=0.7), Call())),
)


def _closings(name: str, *meetings: Meeting | tuple[Meeting, ...], ms: float) -> list[ClientStory]:
    """The client is closed amid an operation; another one follows."""
    return [
        _story(f"{name}, {route.kind}", *meetings, route=route, calls=(Call(closed_ms=ms), Call()))
        for route in (LEADING, PINNED)
    ]


_CLOSING: Final = (
    *_closings("closed at rest", _LEADS, ms=40.3),
    *_closings("closed after sending", (_NEVER, _LEADS), ms=40.3),
    *_closings("closed before the greeting", Meeting(after_ms=100.3), ms=40.3),
    *_closings("closed while nobody greets", (_SILENT, _LEADS), ms=40.3),
    *_closings("closed between two rounds", *[(_follows(None), _LEADS)] * 3, ms=14.3),
)


def _given_up(name: str, *meetings: Meeting | tuple[Meeting, ...], ms: float) -> ClientStory:
    return _story(name, *meetings, calls=(Call(given_up_ms=ms), Call()))


#: That a world's client cannot meet: bytes that are no message, callers that go away.
_MACHINE: Final = (
    *(
        _story(f"{words}, {route.kind}", (meeting, _LEADS), route=route, calls=calls)
        for route in (LEADING, PINNED)
        for words, meeting, calls in (
            ("no greeting but other bytes", Meeting("garbage"), (Call(), Call())),
            ("a greeting of another version", Meeting("stranger"), (Call(), Call())),
            ("no answer but other bytes", _replies(Reply("garbage")), (Call(), Call())),
            ("no answer to a read but bytes", _replies(Reply("garbage")), (Call(READ), Call())),
            ("a value that cannot be sent", _LEADS, (Call(_UNSENDABLE, _SHORT_MS), Call())),
            ("then one that cannot be sent", _LEADS, (Call(), Call(_UNSENDABLE, _SHORT_MS))),
        )
    ),
    _given_up("given up after sending", (_NEVER, _LEADS), ms=40.3),
    _given_up("given up before the greeting", (_SILENT, _LEADS), ms=40.3),
    _given_up("given up while nobody accepts", (Meeting("unaccepted"), _LEADS), ms=40.3),
    _given_up("given up between two rounds", *[(_follows(None), _LEADS)] * 3, ms=14.3),
)

#: Those that the client of a machine and that of a world must tell alike.
ALIKE: Final = {
    "changes_led": _endings(LEADING, WRITE),
    "changes_pinned": _endings(PINNED, WRITE),
    "reads_led": _endings(LEADING, READ),
    "reads_pinned": _endings(PINNED, READ),
    "kinds": _KINDS,
    "rounds": _ROUNDS,
    "reuse": _REUSE,
}
#: Those of one of them alone, or in which they differ.
ON_THE_MACHINE: Final = {"closing": _CLOSING, "bytes_and_callers": _MACHINE}
IN_A_WORLD: Final = {"closing_in_a_world": _CLOSING}
