"""A workload's client of etcd: registers are keys, sets and queues are keys below one.

Operations on several cells at once are a read and a transaction that holds only if nothing was
changed since, again and again until one held. A leased lock is a key with a lease that nobody
renews; the revision of its creation is the token.

Every member hands requests over to the leader. A client that is pinned knows its member alone; one
that follows goes on to the next one when its own fails it, as etcd's own client does. It repeats a
request only after an answer that says that nothing was done. Must never call an operation ``fail``
once a change of it was sent and not refused.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.names import NO_EPOCH, NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.runtime import Address
from splitbrain.systems.cells import RULES, only_reads
from splitbrain.systems.etcd.gateway import below, call, key, key_text, value, value_of
from splitbrain.systems.servers import Refused, Unclear, connected_to_first

#: Keys that are there for comparisons alone, ``compared/...``.
COMPARED: Final = "compared"
#: Time in which whatever publishes the port of a node that is down ends a connection to it.
_ENDED_S: Final = 0.01
_CHANGES: Final = frozenset({"kv/put", "kv/txn"})
#: Least that a member with the usual timeout for elections takes.
_LEASE_S: Final = 2


class Manner(msgspec.Struct, frozen=True):
    """How operations are asked."""

    workload: str | None = None
    #: Whether reads may be answered from the asked member's own copy.
    is_serializable: bool = False
    #: Whether each change compares the creation revisions of the keys in ``COMPARED``.
    compares: bool = False


class EtcdClient:
    """Client of one worker slot."""

    def __init__(self, nodes: Mapping[NodeName, Address], manner: Manner) -> None:
        """Connect at the first operation, to the first of ``nodes`` that takes a connection."""
        self._nodes = deque(nodes.items())
        self._manner = manner
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._may_have_changed = False
        #: By the names that ``systems.workload_client`` gives functions.
        self._functions: Mapping[str, Callable[[Operation], Awaitable[Completion]]] = {
            **dict.fromkeys(("read", "get"), self._look),
            **dict.fromkeys(("write", "put"), self._put),
            **dict.fromkeys(("add", "enqueue"), self._put_below),
            "cas": self._compare_and_set,
            "dequeue": self._dequeue,
            "generate": self._generate,
            "acquire-lease": self._acquire,
            "release-lease": self._release,
            **dict.fromkeys(RULES, self._step),
        }

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        """Perform one operation, at one member."""
        self._may_have_changed = False
        try:
            async with asyncio.timeout(timeout_s):
                await self._connect()
                return await self._perform(operation)
        except Refused as answer:
            return Completion("fail", error=str(answer), node=self._node)
        except Unclear as answer:
            error = str(answer)
        except TimeoutError:
            error = "timed-out"
        except (OSError, EOFError):
            error = "no-connection" if self._streams is None else "connection-lost"
        except (*UNREADABLE, KeyError, ValueError):
            error = "unexpected-answer"
        node = self._node
        # A late answer must never meet a later operation.
        await self.close()
        self._nodes.rotate(-1)
        return Completion("info" if self._may_have_changed else "fail", error=error, node=node)

    async def close(self) -> None:
        """Drop the connection."""
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None

    @property
    def _node(self) -> NodeName:
        return self._nodes[0][0]

    async def _connect(self) -> None:
        if self._streams is not None and not self._streams[0].at_eof():
            return
        await self.close()
        self._streams = await connected_to_first(self._nodes, _connection)

    async def _ask(
        self, name: str, request: dict[str, Any], *, changes: bool | None = None
    ) -> dict[str, Any]:
        if self._streams is None:
            raise ConnectionError
        self._may_have_changed |= name in _CHANGES if changes is None else changes
        return await call(*self._streams, name, request)

    async def _perform(self, operation: Operation) -> Completion:
        perform = self._functions.get(operation.f)
        if perform is None:
            raise Refused(f"no-{operation.f}")
        return await perform(operation)

    async def _look(self, operation: Operation) -> Completion:
        return self._found(await self._read(operation.key or ""))

    async def _put(self, operation: Operation) -> Completion:
        return self._done(operation.value, await self._change(_put(operation.key, operation.value)))

    async def _put_below(self, operation: Operation) -> Completion:
        put = _put(f"{operation.key}/{operation.value}", operation.value)
        return self._done(operation.value, await self._change(put))

    async def _compare_and_set(self, operation: Operation) -> Completion:
        expected, new = operation.value
        is_so = _equal(key(operation.key or ""), "VALUE", "value", value(expected))
        answer = await self._transaction([is_so], [_put(operation.key, new)])
        if not answer.get("succeeded"):
            return self._found([expected, new, False])
        return self._done([expected, new, True], answer)

    async def _generate(self, operation: Operation) -> Completion:
        """The revision that a change makes is no other's."""
        answer = await self._change(_put(operation.key, None))
        return self._done(int(answer["header"]["revision"]), answer)

    async def _step(self, operation: Operation) -> Completion:
        """Do it at a moment between whose look and whose change nothing was changed."""
        rule = RULES[operation.f]
        cells = rule.cells(operation)
        is_local = self._manner.is_serializable and only_reads(operation)
        how = {"serializable": True} if is_local else {}
        looks = [{"request_range": {"key": key(cell), **how}} for cell in cells]
        seen = await self._ask("kv/txn", {"success": looks}, changes=False)
        while True:
            found = [_keys(each["response_range"]) for each in seen["responses"]]
            values = [value_of(each[0]) if each else None for each in found]
            step = rule.step(operation, dict(zip(cells, values, strict=True)))
            if not step.changes:
                return self._found(step.answer)
            are_untouched = [
                _equal(key(cell), "MOD", "mod_revision", each[0]["mod_revision"] if each else "0")
                for cell, each in zip(cells, found, strict=True)
            ]
            puts = [_put(cell, content) for cell, content in step.changes.items()]
            seen = await self._transaction(are_untouched, puts, looks)
            if seen.get("succeeded"):
                return self._done(step.answer, seen)
            # Nothing was done, and the answer has what is there now.
            self._may_have_changed = False

    async def _acquire(self, operation: Operation) -> Completion:
        there = key(operation.key or "")
        if _keys(await self._ask("kv/range", {"key": there})):
            return self._found(False)
        # A lease that no key has is seen by nobody.
        lease = (await self._ask("lease/grant", {"TTL": str(_LEASE_S)}))["ID"]
        put = {"request_put": {"key": there, "value": value(None), "lease": lease}}
        answer = await self._transaction([_equal(there, "CREATE", "create_revision", "0")], [put])
        if not answer.get("succeeded"):
            return self._found(False)
        return self._done(int(answer["header"]["revision"]), answer)

    async def _release(self, operation: Operation) -> Completion:
        there, token = key(operation.key or ""), str(operation.value)
        is_mine = _equal(there, "CREATE", "create_revision", token)
        delete = {"request_delete_range": {"key": there}}
        answer = await self._transaction([is_mine], [delete])
        return self._done(True, answer) if answer.get("succeeded") else self._found(False)

    async def _read(self, name: str) -> Any:
        how = {"serializable": True} if self._manner.is_serializable else {}
        if self._manner.workload == "set":
            found = _keys(await self._ask("kv/range", {**below(name), "keys_only": True, **how}))
            return sorted(int(key_text(each["key"]).rpartition("/")[2]) for each in found)
        found = _keys(await self._ask("kv/range", {"key": key(name), **how}))
        return value_of(found[0]) if found else None

    async def _dequeue(self, operation: Operation) -> Completion:
        """Take the key that was created first.

        Creation revisions only grow, so none that is older than the one found can come later.
        """
        oldest = {"sort_order": "ASCEND", "sort_target": "CREATE", "limit": 1}
        while True:
            found = _keys(await self._ask("kv/range", {**below(operation.key or ""), **oldest}))
            if not found:
                return self._found(None)
            first = found[0]
            is_there = _equal(first["key"], "CREATE", "create_revision", first["create_revision"])
            delete = {"request_delete_range": {"key": first["key"]}}
            answer = await self._transaction([is_there], [delete])
            if answer.get("succeeded"):
                return self._done(value_of(first), answer)
            self._may_have_changed = False

    async def _change(self, act: dict[str, Any]) -> dict[str, Any]:
        if not self._manner.compares:
            return await self._ask("kv/put", act["request_put"])
        answer = await self._transaction([], [act])
        if not answer.get("succeeded"):
            raise Refused("comparison-failed")
        return answer

    async def _transaction(
        self,
        compare: Sequence[dict[str, Any]],
        acts: Sequence[dict[str, Any]],
        otherwise: Sequence[dict[str, Any]] = (),
    ) -> dict[str, Any]:
        are_there = {
            **below(COMPARED),
            "target": "CREATE",
            "result": "GREATER",
            "create_revision": "0",
        }
        compares = [*compare, *([are_there] if self._manner.compares else [])]
        request = {"compare": compares, "success": acts, "failure": otherwise}
        return await self._ask("kv/txn", request)

    def _found(self, content: Any) -> Completion:
        return Completion("ok", content, node=self._node)

    def _done(self, content: Any, answer: dict[str, Any]) -> Completion:
        position = (NO_EPOCH, int(answer["header"]["revision"]))
        return Completion("ok", content, position=position, node=self._node)


def _put(name: str | None, content: Any) -> dict[str, Any]:
    return {"request_put": {"key": key(name or ""), "value": value(content)}}


def _keys(answer: dict[str, Any]) -> Sequence[dict[str, str]]:
    return answer.get("kvs") or ()


def _equal(there: str, target: str, field: str, content: str) -> dict[str, str]:
    return {"key": there, "target": target, "result": "EQUAL", field: content}


async def _connection(there: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(there.host, there.port)
    # An operation that is sent to a node that is down would be of unknown outcome.
    await asyncio.sleep(_ENDED_S)
    if reader.at_eof():
        writer.close()
        raise ConnectionError
    return reader, writer
