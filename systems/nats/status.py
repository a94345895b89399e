"""Questions to one server: whether it leads the stream, how much of it it has; making the stream.

Blocking. Must never be called from an event loop's thread.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UNREADABLE, in_one_line
from splitbrain.contracts.member_digest import MemberDigest
from splitbrain.contracts.runtime import Address
from splitbrain.systems.nats.jetstream import ask, count_handed
from splitbrain.systems.nats.protocol import NatsConnection, connect
from splitbrain.systems.nats.streams import ACK_WAIT_S
from splitbrain.systems.questions import ask_by_http
from splitbrain.systems.servers import Refused

_LEADER: Final = "LEADER"
#: Login in the account of the system, which may change the cluster.
OPERATOR: Final[Mapping[str, str]] = {"user": "operator", "pass": "operator"}
#: Account of clients that name none.
_ACCOUNT: Final = "$G"
#: Time in which a server sees that an acknowledgement is overdue.
_TIMER_S: Final = 1.0
#: First letters of the groups that keep a stream; consumers' and the cluster's own have others.
_STREAM_GROUP: Final = "S-"


class _Group(msgspec.Struct, frozen=True):
    state: str
    term: int
    applied: int
    committed: int = 0


class StreamState(msgspec.Struct, frozen=True):
    """The messages that one server has of a stream."""

    messages: int = 0
    bytes: int = 0
    first_seq: int = 0
    last_seq: int = 0


class _Stream(msgspec.Struct, frozen=True):
    name: str
    state: StreamState
    stream_raft_group: str = ""


class _Account(msgspec.Struct, frozen=True):
    stream_detail: tuple[_Stream, ...] = ()


class _Replica(msgspec.Struct, frozen=True):
    name: str = ""


class _Meta(msgspec.Struct, frozen=True):
    leader: str = ""
    cluster_size: int = 0
    #: The others, where the asked server leads.
    replicas: tuple[_Replica, ...] = ()


class _Told(msgspec.Struct, frozen=True):
    account_details: tuple[_Account, ...] = ()
    meta_cluster: _Meta = _Meta()
    memory: int = 0
    storage: int = 0
    messages: int = 0
    bytes: int = 0
    api: Mapping[str, Any] = {}


class ServerView(msgspec.Struct, frozen=True):
    """One server, as a member of the stream's group sees itself."""

    leads: bool
    #: Term of the group; 0: there is no group.
    epoch: int
    #: Entry of the group's log up to which it has applied.
    applied: int
    #: Whether that is all of which it knows that it is committed.
    is_settled: bool = True


def ask_view(there: Address, timeout_s: float) -> ServerView | None:
    """Return the view of a server; None where it does not answer."""
    kind = Mapping[str, Mapping[str, _Group]]
    accounts = _asked(there, f"/raftz?acc={_ACCOUNT}", kind, timeout_s)
    if accounts is None:
        return None
    groups = accounts.get(_ACCOUNT, {})
    for name, group in groups.items():
        if name.startswith(_STREAM_GROUP):
            is_settled = group.applied == group.committed
            return ServerView(group.state == _LEADER, group.term, group.applied, is_settled)
    return ServerView(leads=False, epoch=0, applied=0)


def ask_cluster(there: Address, timeout_s: float) -> tuple[str, int] | None:
    """Return the leader and the size of the cluster, as a server sees them.

    The leader is empty where there is none; None where the server does not answer.
    """
    told = _asked(there, "/jsz", _Told, timeout_s)
    return None if told is None else (told.meta_cluster.leader, told.meta_cluster.cluster_size)


def ask_members(there: Address, timeout_s: float) -> frozenset[str | None] | None:
    """Return the servers of the cluster as one of them sees it; None where it follows nobody.

    The leader knows all; of the others each knows the leader, and None stands for the rest, as it
    does for a server that the leader has not heard of since it started.
    """
    told = _asked(there, "/jsz", _Told, timeout_s)
    if told is None or not told.meta_cluster.leader:
        return None
    meta = told.meta_cluster
    # A sentence stands in the place of a name that is not known.
    names = {None if " " in replica.name else replica.name for replica in meta.replicas}
    knows_all = meta.cluster_size == 1 + len(meta.replicas)
    return frozenset({meta.leader, *names, *(() if knows_all else (None,))})


def problem_with_removal(there: Address, server: str, timeout_s: float) -> str | None:
    """Have the cluster's leader remove a server; return why that is not done, None where it is."""

    async def remove(connection: NatsConnection) -> str | None:
        await ask(connection, "SERVER.REMOVE", {"peer": server})
        return None

    return _problem(there, remove, timeout_s, OPERATOR)


def ask_state(there: Address, stream: str, timeout_s: float) -> StreamState | None:
    """Return a server's part of a stream; None where it does not answer, or has no such stream."""
    found = _ask_stream(there, stream, timeout_s)
    return None if found is None else found.state


def ask_digest(there: Address, stream: str, timeout_s: float) -> MemberDigest | None:
    """Return how many messages and bytes a server has, at its last message; None as before."""
    found = _ask_stream(there, stream, timeout_s)
    if found is None:
        return None
    state = found.state
    # An empty stream has no first message; servers name one or the other.
    start = f" from {state.first_seq}" if state.messages else ""
    return MemberDigest(
        position=state.last_seq,
        digest=f"{state.messages} messages, {state.bytes} bytes{start}",
        # A stream that is made again begins with 1 again.
        scope=found.stream_raft_group,
    )


def ask_figures(there: Address, timeout_s: float) -> dict[str, float] | None:
    """Return numbers of a server's JetStream; None where it does not answer."""
    told = _asked(there, "/jsz", _Told, timeout_s)
    if told is None:
        return None
    return {
        "messages": told.messages,
        "bytes": told.bytes,
        "storage": told.storage,
        "memory": told.memory,
        "api_total": told.api.get("total", 0),
        "api_errors": told.api.get("errors", 0),
    }


def problem_with_stream(
    there: Address, configuration: Mapping[str, Any], timeout_s: float
) -> str | None:
    """Make a stream unless it is there; return why that is not done, None where it is."""

    async def make(connection: NatsConnection) -> str | None:
        await ask(connection, f"STREAM.CREATE.{configuration['name']}", configuration)
        return None

    return _problem(there, make, timeout_s)


class Redelivery:
    """Whether what consumers hold unacknowledged is due to be handed out again.

    A server counts it as unacknowledged until then, however long ago that was; so nothing may have
    been handed out for longer than an acknowledgement is waited for.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._handed = -1
        self._since_s = 0.0

    def problem(self, there: Address, stream: str, timeout_s: float) -> str | None:
        """Return why it is not, or is not known to be; None: it is."""

        async def look(connection: NatsConnection) -> str | None:
            unacknowledged, handed = await count_handed(connection, stream)
            now_s = self._now_s()
            if handed != self._handed:
                self._handed, self._since_s = handed, now_s
            is_due = now_s - self._since_s > ACK_WAIT_S + _TIMER_S
            return None if is_due or not unacknowledged else f"{unacknowledged} elements are out"

        return _problem(there, look, timeout_s)


def _problem(
    there: Address,
    do: Callable[[NatsConnection], Awaitable[str | None]],
    timeout_s: float,
    login: Mapping[str, str] | None = None,
) -> str | None:
    async def connect_and_do() -> str | None:
        async with asyncio.timeout(timeout_s):
            connection = await connect(there, login)
            try:
                return await do(connection)
            finally:
                connection.close()

    try:
        return asyncio.run(connect_and_do())
    except Refused as answer:
        return str(answer)
    except TimeoutError:
        return "nobody answers in time"
    except (OSError, EOFError, KeyError, ValueError, *UNREADABLE) as error:
        return in_one_line(error)


def _ask_stream(there: Address, stream: str, timeout_s: float) -> _Stream | None:
    told = _asked(there, "/jsz?streams=true&raft=true", _Told, timeout_s)
    details: Sequence[_Account] = () if told is None else told.account_details
    found = (each for account in details for each in account.stream_detail)
    return next((each for each in found if each.name == stream), None)


def _asked(there: Address, path: str, kind: Any, timeout_s: float) -> Any:
    answer = ask_by_http(there, "GET", path, timeout_s)
    if answer is not None:
        with contextlib.suppress(*UNREADABLE):
            return msgspec.json.decode(answer, type=kind)
    return None
