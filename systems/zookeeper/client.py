"""A workload's client of ZooKeeper: registers are nodes, sets and queues nodes with children.

Operations on several cells at once are a look at each node and a transaction that holds only if all
still have the versions that were seen, again and again until one held. A leased lock is an
ephemeral node; the transaction that created it is the token.

A client keeps to its session; one that is pinned knows its node alone, one that follows goes on to
the next node that gives it a session, as ZooKeeper's own client does with its list of servers. It
repeats a request only after an answer that says that nothing was done. Must never call an operation
``fail`` once a change of it was sent and not refused.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.runtime import Address
from splitbrain.systems.cells import RULES
from splitbrain.systems.servers import Refused, Unclear
from splitbrain.systems.zookeeper.session import (
    ANY_VERSION,
    BAD_VERSION,
    CHANGES,
    CHECK,
    CREATE,
    DELETE,
    EPHEMERAL,
    GET_CHILDREN,
    GET_DATA,
    MULTI,
    NO_NODE,
    NODE_EXISTS,
    OK,
    SEQUENTIAL,
    SET_DATA,
    SYNC,
    Answer,
    Session,
    data,
    last_part,
    node_to_create,
    node_to_watch,
    number,
    open_session,
    part,
    read_children,
    read_node,
    read_owner,
    read_refusal,
    text,
)

#: Longest wait for a session with one node while others could be asked instead.
SESSION_PATIENCE_S: Final = 0.7
#: Answers with which the leader refuses a change before it is proposed.
REFUSALS: Final[Mapping[int, str]] = {
    -6: "unimplemented",
    -8: "bad-arguments",
    -102: "not-allowed",
    -112: "session-expired",
    -118: "session-moved",
    -119: "read-only-server",
    -127: "throttled",
}
#: Answers that a client expects, each before anything is changed.
_EXPECTED: Final = frozenset({NO_NODE, BAD_VERSION, NODE_EXISTS})
#: How a read makes sure that it is not behind.
QUORUM, SYNCED, LOCAL = "quorum", "sync", "local"
READS: Final = (QUORUM, SYNCED, LOCAL)
_ELEMENT: Final = "e"


class ZooKeeperClient:
    """Client of one worker slot."""

    def __init__(self, nodes: Mapping[NodeName, Address], workload: str | None, reads: str) -> None:
        """Connect at the first operation, to the first of ``nodes`` that gives a session."""
        self._nodes = nodes
        self._workload = workload
        self._reads = reads
        self._session: Session | None = None
        self._node: NodeName | None = None
        #: Newest transaction that a server told; ZooKeeper's own client keeps it, too.
        self._seen_zxid = 0
        self._may_have_changed = False
        #: By the names that ``systems.workload_client`` gives functions.
        self._functions: Mapping[str, Callable[[Session, Operation], Awaitable[Completion]]] = {
            **dict.fromkeys(("read", "get"), self._look),
            **dict.fromkeys(("write", "put"), self._put),
            "cas": self._compare_and_set,
            "add": self._put_below,
            "enqueue": self._enqueue,
            "dequeue": self._dequeue,
            "generate": self._generate,
            "acquire-lease": self._acquire,
            "release-lease": self._release,
            **dict.fromkeys(RULES, self._step),
        }

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        """Perform one operation, on one session."""
        self._may_have_changed = False
        try:
            async with asyncio.timeout(timeout_s):
                return await self._perform(operation, await self._live_session())
        except (Refused, Unclear) as answer:
            error = str(answer)
        except TimeoutError:
            error = "timed-out"
        except (OSError, EOFError):
            error = "no-session" if self._session is None else "connection-lost"
        except UNREADABLE:
            error = "unexpected-answer"
        node = self._node
        # A late answer must never meet a later operation.
        await self.close()
        return Completion("info" if self._may_have_changed else "fail", error=error, node=node)

    async def close(self) -> None:
        """Drop the session."""
        if self._session is not None:
            self._session.close()
        self._session = self._node = None

    async def _live_session(self) -> Session:
        if self._session is not None and not self._session.is_fresh():
            await self.close()
        if self._session is None:
            self._node, self._session = await self._first_session()
        return self._session

    async def _first_session(self) -> tuple[NodeName, Session]:
        *others, last = self._nodes.items()
        for node, there in others:
            try:
                async with asyncio.timeout(SESSION_PATIENCE_S):
                    return node, await open_session(there, self._seen_zxid)
            except (OSError, EOFError):
                continue
        return last[0], await open_session(last[1], self._seen_zxid)

    async def _perform(self, operation: Operation, session: Session) -> Completion:
        perform = self._functions.get(operation.f)
        if perform is None:
            raise Refused(f"no-{operation.f}")
        return await perform(session, operation)

    async def _look(self, session: Session, operation: Operation) -> Completion:
        await self._catch_up(session, self._reads)
        path = _path(operation)
        if self._workload == "set":
            return self._read(sorted(map(int, await self._children(session, path))))
        return self._read((await self._content(session, path))[0])

    async def _put(self, session: Session, operation: Operation) -> Completion:
        return self._done(operation.value, await self._write(session, operation))

    async def _generate(self, session: Session, operation: Operation) -> Completion:
        """The transaction that a change makes is no other's."""
        answer = await self._write(session, operation)
        return self._done(answer.zxid, answer)

    async def _put_below(self, session: Session, operation: Operation) -> Completion:
        path = _path(operation)
        answer = await self._add(session, path, f"{path}/{operation.value}", b"", 0)
        return self._done(operation.value, answer)

    async def _enqueue(self, session: Session, operation: Operation) -> Completion:
        path, content = _path(operation), msgspec.json.encode(operation.value)
        answer = await self._add(session, path, f"{path}/{_ELEMENT}", content, SEQUENTIAL)
        return self._done(operation.value, answer)

    def _read(self, value: Any) -> Completion:
        return Completion("ok", value, node=self._node)

    def _done(self, value: Any, answer: Answer) -> Completion:
        return Completion("ok", value, position=answer.position(), node=self._node)

    async def _ask(self, session: Session, kind: int, *fields: bytes) -> Answer:
        """Return an answer that is none of an error, or that of an expected one."""
        is_change = kind in CHANGES
        self._may_have_changed |= is_change
        return self._taken(await session.ask(kind, *fields))

    def _taken(self, answer: Answer) -> Answer:
        self._seen_zxid = max(self._seen_zxid, answer.zxid)
        if answer.code in _EXPECTED or answer.code in REFUSALS:
            # The change before it, if there was one, is of a node that no read looks at.
            self._may_have_changed = False
        if answer.code in REFUSALS:
            raise Refused(REFUSALS[answer.code])
        if answer.code != OK and answer.code not in _EXPECTED:
            raise Unclear("server-error")
        return answer

    async def _catch_up(self, session: Session, how: str) -> None:
        """Have the server apply all that was acknowledged before.

        A leader does not order ``sync`` behind changes: it answers its own clients as it would a
        read, with changes that others have seen still to be applied, and without asking whether it
        still leads. A change, here to a node that nobody reads, is answered when its server has
        applied all before it.
        """
        if how == SYNCED:
            await self._ask(session, SYNC, text("/"))
        elif how == QUORUM:
            fence = await session.ask(SET_DATA, text("/"), data(b""), number(ANY_VERSION))
            self._taken(fence)

    async def _content(self, session: Session, path: str) -> tuple[Any, int]:
        """Value and version of a register; None and -1 of one that was never written."""
        (content,) = await self._contents(session, [path])
        return content

    async def _contents(self, session: Session, paths: Sequence[str]) -> Sequence[tuple[Any, int]]:
        """The same of several; not of one moment."""
        answers = await session.ask_all(GET_DATA, [node_to_watch(path) for path in paths])
        return [_content_of(self._taken(answer)) for answer in answers]

    async def _children(self, session: Session, path: str) -> Sequence[str]:
        answer = await self._ask(session, GET_CHILDREN, node_to_watch(path))
        return () if answer.code == NO_NODE else read_children(answer.body)

    async def _write(self, session: Session, operation: Operation) -> Answer:
        path, content = _path(operation), msgspec.json.encode(operation.value)
        while True:
            answer = await self._ask(
                session, SET_DATA, text(path), data(content), number(ANY_VERSION)
            )
            if answer.code == NO_NODE:
                answer = await self._ask(session, CREATE, node_to_create(path, content))
            if answer.code == OK:
                return answer

    async def _compare_and_set(self, session: Session, operation: Operation) -> Completion:
        path = _path(operation)
        expected, new = operation.value
        while True:
            # A mismatch is an observation, and must not be behind, however reads are asked.
            await self._catch_up(session, QUORUM)
            value, version = await self._content(session, path)
            if value != expected:
                return self._read([expected, new, False])
            content = data(msgspec.json.encode(new))
            answer = await self._ask(session, SET_DATA, text(path), content, number(version))
            if answer.code == OK:
                return self._done([expected, new, True], answer)

    async def _add(
        self, session: Session, parent: str, path: str, content: bytes, flags: int
    ) -> Answer:
        node = node_to_create(path, content, flags)
        answer = await self._ask(session, CREATE, node)
        if answer.code == NO_NODE:
            await self._ask(session, CREATE, node_to_create(parent, b""))
            answer = await self._ask(session, CREATE, node)
        if answer.code != OK:
            raise Unclear("server-error")
        return answer

    async def _dequeue(self, session: Session, operation: Operation) -> Completion:
        """Take the child of the lowest number that can be deleted.

        Numbers only grow, so none that is lower than those listed can come later.
        """
        path = _path(operation)
        while True:
            await self._catch_up(session, QUORUM)
            children = sorted(await self._children(session, path))
            if not children:
                return self._read(None)
            for child in children:
                there = f"{path}/{child}"
                content, _ = await self._content(session, there)
                if content is None:
                    continue
                answer = await self._ask(session, DELETE, text(there), number(ANY_VERSION))
                if answer.code == OK:
                    return self._done(content, answer)

    async def _acquire(self, session: Session, operation: Operation) -> Completion:
        node = node_to_create(_path(operation), b"", EPHEMERAL)
        answer = await self._ask(session, CREATE, node)
        return self._done(answer.zxid, answer) if answer.code == OK else self._read(False)

    async def _release(self, session: Session, operation: Operation) -> Completion:
        """Give a lock back that goes with this very session, which sees its own changes.

        As long as it lives nobody else can have the node; that of an earlier session is left.
        """
        path = _path(operation)
        answer = await self._ask(session, GET_DATA, node_to_watch(path))
        if answer.code != OK or read_owner(answer.body) != session.number:
            return self._read(False)
        answer = await self._ask(session, DELETE, text(path), number(ANY_VERSION))
        return self._done(True, answer) if answer.code == OK else self._read(False)

    async def _step(self, session: Session, operation: Operation) -> Completion:
        """Do it at a moment between whose look and whose transaction nothing was changed."""
        rule = RULES[operation.f]
        paths = {cell: f"/{cell.replace('/', ':')}" for cell in rule.cells(operation)}
        while True:
            await self._catch_up(session, QUORUM)
            contents = await self._contents(session, [*paths.values()])
            found = dict(zip(paths, contents, strict=True))
            step = rule.step(operation, {cell: content for cell, (content, _) in found.items()})
            if not step.changes and len(found) == 1:
                return self._read(step.answer)
            missing = [paths[cell] for cell, (_, version) in found.items() if version < 0]
            for path in missing:
                # A node with null is one that was never written.
                await self._ask(session, CREATE, node_to_create(path, b"null"))
                self._may_have_changed = False
            if missing:
                continue
            parts = [
                _part(path, found[cell][1], step.changes, cell) for cell, path in paths.items()
            ]
            answer = await self._ask(session, MULTI, *parts, last_part())
            code = read_refusal(answer.body)
            if code == OK and step.changes:
                return self._done(step.answer, answer)
            if code == OK:
                return self._read(step.answer)
            self._may_have_changed = False
            if code not in _EXPECTED:
                raise Refused("transaction-refused")


def _path(operation: Operation) -> str:
    return f"/{operation.key}"


def _content_of(answer: Answer) -> tuple[Any, int]:
    if answer.code == NO_NODE:
        return None, ANY_VERSION
    content, version = read_node(answer.body)
    return msgspec.json.decode(content), version


def _part(path: str, version: int, changes: Mapping[str, Any], cell: str) -> bytes:
    """A change of a node that has this version, or only the demand that it has."""
    if cell not in changes:
        return part(CHECK, text(path), number(version))
    content = data(msgspec.json.encode(changes[cell]))
    return part(SET_DATA, text(path), content, number(version))
