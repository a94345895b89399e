"""Asks the server and the Sentinel of a node what they believe, from a thread of the harness.

Blocking, with one deadline for both. Must never be called from an event loop's thread.
"""

import socket
import time
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from splitbrain.contracts.member_digest import MemberDigest
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Address
from splitbrain.systems.redis import resp
from splitbrain.systems.redis.commands import PRIMARY_ROLE
from splitbrain.systems.redis.settings import MASTER_NAME, SENTINEL_PORT, SERVER_PORT, Endpoint

_REPLICA_PREFIX: Final = "slave"


class ServerView(msgspec.Struct, frozen=True):
    """One server's own view."""

    is_primary: bool
    #: End of what it has of the replicated stream, bytes.
    offset: int
    #: Replicas that are connected and in step; of a primary.
    online_replicas: int
    #: Address of its primary and whether the link to it is up; of a replica.
    primary_host: str
    primary_port: str
    link_is_up: bool
    used_memory_bytes: int


class SentinelView(msgspec.Struct, frozen=True):
    """One Sentinel's view of the group."""

    #: Address of the primary that it names.
    host: str
    port: str
    config_epoch: int
    #: Nothing is wrong with the primary, as far as it sees.
    primary_is_fine: bool
    #: Replicas with which nothing is wrong, and whose own view it has.
    fine_replicas: int
    #: Whether enough other Sentinels answer it to fail over, and all that it says of that.
    quorum: str


class NodeView(msgspec.Struct, frozen=True):
    """One node; a part that does not answer is None."""

    server: ServerView | None
    sentinel: SentinelView | None


def ask(endpoint: Endpoint, node: NodeName, timeout_s: float) -> NodeView | None:
    """Ask one node; None if it says nothing at all within the time."""
    deadline = time.monotonic() + timeout_s
    server = sentinel = None
    questions = [("INFO", "replication"), ("INFO", "memory")]
    if (replies := exchange(endpoint(node, SERVER_PORT), questions, deadline)) is not None:
        server = server_view(replies)
    questions = [
        ("SENTINEL", "MASTER", MASTER_NAME),
        ("SENTINEL", "REPLICAS", MASTER_NAME),
        ("SENTINEL", "CKQUORUM", MASTER_NAME),
    ]
    if (replies := exchange(endpoint(node, SENTINEL_PORT), questions, deadline)) is not None:
        sentinel = sentinel_view(replies)
    return None if server is None and sentinel is None else NodeView(server, sentinel)


def ask_digest(endpoint: Endpoint, node: NodeName, timeout_s: float) -> MemberDigest | None:
    """Ask a server for its data's digest; None where it cannot be told for which offset."""
    questions = [("INFO",), ("DEBUG", "DIGEST"), ("INFO",)]
    replies = exchange(endpoint(node, SERVER_PORT), questions, time.monotonic() + timeout_s)
    return None if replies is None else digest_of(replies)


def digest_of(replies: Sequence[resp.Reply]) -> MemberDigest | None:
    """From INFO before and after, and DEBUG DIGEST in between.

    The id of the replication is the scope, since each failover begins another one. A replica's
    data are those of its offset only while its link is up: before, it may be loading another's.
    """
    info, digest, info_after = replies
    begin, end = _standing(resp.info_fields(info)), _standing(resp.info_fields(info_after))
    if isinstance(digest, resp.ErrorReply) or begin is None or begin != end:
        return None
    scope, offset = begin
    return MemberDigest(offset, resp.text(digest), scope)


def _standing(fields: Mapping[str, str]) -> tuple[str, int] | None:
    """Return id and offset of the replication; None where the data need not be those."""
    is_primary = fields.get("role") == PRIMARY_ROLE
    offset = fields.get("master_repl_offset" if is_primary else "slave_repl_offset")
    # Without a backlog the offset stands still, whatever is written: a primary that nobody follows.
    if is_primary and fields.get("repl_backlog_active") == "0":
        return None
    is_loading = fields.get("loading") != "0" or fields.get("async_loading", "0") != "0"
    if offset is None or is_loading or not (is_primary or fields.get("master_link_status") == "up"):
        return None
    return fields["master_replid"], int(offset)


def exchange(
    address: Address, questions: Sequence[Sequence[str]], deadline: float
) -> list[resp.Reply] | None:
    """Return a reply to each question, None if they do not come before the deadline (monotonic)."""
    parser = resp.ReplyParser()
    replies: list[resp.Reply] = []

    def remaining_s() -> float:
        if (remaining := deadline - time.monotonic()) <= 0:
            raise TimeoutError
        return remaining

    try:
        with socket.create_connection((address.host, address.port), remaining_s()) as connection:
            connection.sendall(b"".join(resp.encode_command(question) for question in questions))
            while len(replies) < len(questions):
                connection.settimeout(remaining_s())
                if not (data := connection.recv(65_536)):
                    return None
                replies += parser.feed(data)
    except (OSError, resp.ProtocolError):
        return None
    return replies


def server_view(replies: Sequence[resp.Reply]) -> ServerView | None:
    """From the replication and memory sections of INFO; None while the server is not ready."""
    if any(isinstance(reply, resp.ErrorReply) for reply in replies):
        return None
    fields = {name: value for reply in replies for name, value in resp.info_fields(reply).items()}
    if "role" not in fields:
        return None
    is_primary = fields["role"] == PRIMARY_ROLE
    # ``slave0:ip=n2,port=6379,state=online,offset=42,lag=0``, one line a replica.
    lines = [
        value
        for name, value in fields.items()
        if name.startswith(_REPLICA_PREFIX) and name.removeprefix(_REPLICA_PREFIX).isdigit()
    ]
    own = fields.get("master_repl_offset", "0")
    return ServerView(
        is_primary=is_primary,
        offset=int(own if is_primary else fields.get("slave_repl_offset", own)),
        online_replicas=sum("state=online" in line for line in lines) if is_primary else 0,
        primary_host=fields.get("master_host", ""),
        primary_port=fields.get("master_port", ""),
        link_is_up=fields.get("master_link_status") == "up",
        used_memory_bytes=int(fields.get("used_memory", "0")),
    )


def sentinel_view(replies: Sequence[resp.Reply]) -> SentinelView | None:
    """From the three answers of a Sentinel; None where it does not know the group."""
    described_group, replicas, quorum = replies
    group = resp.pairs(described_group)
    if not group.get("config-epoch", "").isdigit():
        return None
    described = [resp.pairs(replica) for replica in replicas] if isinstance(replicas, list) else []
    return SentinelView(
        host=group.get("ip", ""),
        port=group.get("port", ""),
        config_epoch=int(group["config-epoch"]),
        primary_is_fine=group.get("flags") == PRIMARY_ROLE,
        fine_replicas=sum(
            replica.get("flags") == _REPLICA_PREFIX and replica.get("master-link-status") == "ok"
            for replica in described
        ),
        quorum=quorum.text if isinstance(quorum, resp.ErrorReply) else resp.text(quorum),
    )
