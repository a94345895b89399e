"""A member's JSON gateway with keys in memory, which can be told to misbehave."""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from splitbrain.contracts.runtime import Address


class Hang(Exception):
    """Raised by an interruption: close the connection instead of answering."""


#: Called with the name of each call before it is done; a status and a text refuse it.
Interruption = Callable[[str], tuple[int, str] | None]


class FakeGateway:
    def __init__(self) -> None:
        self.revision = 1
        #: Key to value, revision of its creation.
        self.keys: dict[str, tuple[str, int]] = {}
        #: Revision of the last change of a key that was changed since its creation.
        self.modified: dict[str, int] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._writers: list[asyncio.StreamWriter] = []
        self.before: Interruption = lambda name: None
        #: Called once a call is done, before it is answered.
        self.after: Callable[[str], None] = lambda name: None

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[Address]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
        finally:
            server.close()
            for writer in self._writers:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = int(head.partition("Content-Length: ")[2].split("\r\n")[0])
                request = json.loads(await reader.readexactly(length))
                name = head.split(" ")[1].rpartition("/")[2]
                status, answer = self._answer(name, request)
                body = json.dumps(answer).encode()
                writer.write(
                    f"HTTP/1.1 {status} Text\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
                )
        except (EOFError, Hang):
            writer.close()

    def _answer(self, name: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.asked.append((name, request))
        if (refusal := self.before(name)) is not None:
            return refusal[0], {"error": refusal[1]}
        done = getattr(self, f"_{name}")(request)
        self.after(name)
        return 200, {"header": {"revision": str(self.revision)}, **done}

    def _range(self, request: dict[str, Any]) -> dict[str, Any]:
        found = [
            {
                "key": key,
                "value": value,
                "create_revision": str(created),
                "mod_revision": str(self.modified.get(key, created)),
            }
            for key, (value, created) in self._within(request)
        ]
        found.sort(key=lambda each: int(each["create_revision"]))
        return {"kvs": found[: request.get("limit")]} if found else {}

    def _put(self, request: dict[str, Any]) -> dict[str, Any]:
        self.revision += 1
        created = self.keys.get(request["key"], ("", self.revision))[1]
        self.keys[request["key"]] = (request["value"], created)
        self.modified[request["key"]] = self.revision
        return {}

    def _grant(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"ID": "77", "TTL": request["TTL"]}

    def _txn(self, request: dict[str, Any]) -> dict[str, Any]:
        succeeded = all(map(self._holds, request.get("compare", ())))
        responses: list[dict[str, Any]] = []
        for act in request.get("success" if succeeded else "failure", ()):
            if "request_put" in act:
                self._put(act["request_put"])
            elif "request_range" in act:
                responses.append({"response_range": self._range(act["request_range"])})
            else:
                self.revision += 1
                del self.keys[act["request_delete_range"]["key"]]
                self.modified.pop(act["request_delete_range"]["key"], None)
        return {**({"succeeded": True} if succeeded else {}), "responses": responses}

    def _holds(self, compare: dict[str, Any]) -> bool:
        # A key that is not there has no value and was created at 0.
        there = [each for _, each in self._within(compare)] or [("", 0)]
        if compare["target"] == "VALUE":
            return all(value == compare["value"] for value, _ in there)
        if compare["target"] == "MOD":
            key = compare["key"]
            created = self.keys.get(key, ("", 0))[1]
            return self.modified.get(key, created) == int(compare["mod_revision"])
        wanted = int(compare["create_revision"])
        is_equal = compare["result"] == "EQUAL"
        return all(created == wanted if is_equal else created > wanted for _, created in there)

    def _within(self, request: dict[str, Any]) -> list[tuple[str, tuple[str, int]]]:
        first, end = request["key"], request.get("range_end")
        return [
            (key, each)
            for key, each in self.keys.items()
            if (key == first if end is None else _plain(first) <= _plain(key) < _plain(end))
        ]


def _plain(key: str) -> bytes:
    return base64.b64decode(key)
