"""A server of NATS with one stream in memory, which can be told to misbehave."""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

from splitbrain.contracts.runtime import Address

_EXPECTED = "Nats-Expected-Last-Subject-Sequence"


class Answer(NamedTuple):
    #: Empty, or with a line of a status.
    head: str
    body: bytes
    reply_to: str = ""
    #: Empty: that which the request names for its answers.
    subject: str = ""


class Hang(Exception):
    """Raised by an interruption: close the connection instead of answering."""


def status(number: int, reason: str = "Words", **headers: int) -> Answer:
    lines = [
        f"NATS/1.0 {number} {reason}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return Answer("\r\n".join([*lines, "", ""]), b"")


def error(number: int) -> Answer:
    return Answer("", json.dumps({"error": {"code": 400, "err_code": number}}).encode())


class FakeServer:
    def __init__(self) -> None:
        #: Subject, body, of the messages that are there, by their sequences.
        self.messages: dict[int, tuple[str, bytes]] = {}
        #: Sequences that are handed out and not acknowledged.
        self.out: list[int] = []
        self.handed = 0
        self.consumers: set[str] = set()
        self.asked: list[tuple[str, bytes]] = []
        self.connected = 0
        #: Options of connections.
        self.logins: list[dict[str, Any]] = []
        #: Called with the subject of each request before it is done; an answer stops it.
        self.before: Callable[[str], Answer | None] = lambda subject: None
        #: Called once a request is done, before it is answered.
        self.after: Callable[[str], None] = lambda subject: None
        #: Sent before each answer.
        self.noise = b""
        #: Messages that it hands out at once.
        self.batch = 100
        self._last = 0
        self._writers: list[asyncio.StreamWriter] = []

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[Address]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
        finally:
            server.close()
            await self.end_connections()

    async def end_connections(self) -> None:
        for writer in self._writers:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        self.connected += 1
        told = {"server_id": "S", "client_id": self.connected}
        writer.write(f"INFO {json.dumps(told)}\r\n".encode())
        try:
            while True:
                line = (await reader.readuntil(b"\r\n")).decode()
                words = line.split()
                if words[0] == "CONNECT":
                    self.logins.append(json.loads(line.partition(" ")[2]))
                elif words[0] == "PING":
                    writer.write(b"PONG\r\n")
                elif words[0] in ("PUB", "HPUB"):
                    heads = int(words[3]) if words[0] == "HPUB" else 0
                    content = (await reader.readexactly(int(words[-1]) + 2))[:-2]
                    for answer in self._answers(words[1], content[:heads], content[heads:]):
                        writer.write(self.noise + _framed(words[2], answer))
        except (EOFError, Hang):
            writer.close()

    def _answers(self, subject: str, head: bytes, body: bytes) -> list[Answer]:
        self.asked.append((subject, body))
        refusal = self.before(subject)
        if refusal is not None:
            return [refusal]
        request: dict[str, Any] = json.loads(body) if subject.startswith("$JS.API.") else {}
        if subject.startswith("$JS.ACK."):
            answers = [self._acknowledge(int(subject.rpartition(".")[2]))]
        elif subject.startswith("$JS.API.CONSUMER.CREATE."):
            self.consumers.add(request["config"]["durable_name"])
            answers = [_told({"config": request["config"]})]
        elif subject.startswith("$JS.API.CONSUMER.MSG.NEXT."):
            answers = [self._next(subject.rpartition(".")[2])]
        elif subject.startswith("$JS.API.CONSUMER.LIST."):
            answers = [self._list()]
        elif subject.startswith("$JS.API.DIRECT.GET."):
            answers = self._direct(request)
        elif subject.startswith("$JS.API.STREAM.MSG.GET."):
            answers = [self._last_by_leader(request["last_by_subj"])]
        elif subject.startswith("$JS."):
            answers = [_told({"config": request})]
        else:
            answers = [self._publish(subject, head.decode(), body)]
        self.after(subject)
        return answers

    def store(self, subject: str, body: bytes) -> None:
        self._last += 1
        if subject.startswith("$KV."):
            self.messages = {n: each for n, each in self.messages.items() if each[0] != subject}
        self.messages[self._last] = (subject, body)

    def _publish(self, subject: str, head: str, body: bytes) -> Answer:
        wanted = dict(line.split(": ") for line in head.split("\r\n")[1:] if line)
        if _EXPECTED in wanted:
            found = self._of(wanted.get(f"{_EXPECTED}-Subject", subject))
            if int(wanted[_EXPECTED]) != (found[-1] if found else 0):
                return error(10071)
        self.store(subject, body)
        return _told({"stream": "S", "seq": self._last})

    def _last_by_leader(self, subject: str) -> Answer:
        found = self._of(subject)
        if not found:
            return error(10037)
        data = base64.b64encode(self.messages[found[-1]][1]).decode()
        # Without data where there is none.
        content = {"data": data} if data else {}
        return _told({"message": {"subject": subject, "seq": found[-1], **content}})

    def _direct(self, request: dict[str, Any]) -> list[Answer]:
        if "last_by_subj" in request:
            found = self._of(request["last_by_subj"])[-1:]
            return [self._handed(n) for n in found] or [status(404, "Message Not Found")]
        (pattern,) = request["multi_last"]
        below = pattern.removesuffix("*")
        last = {name: n for n, (name, _) in self.messages.items() if name.startswith(below)}
        if not last:
            return [status(404, "No Results")]
        handed = list(last.values())[: self.batch]
        pending = {"Nats-Num-Pending": len(last) - len(handed)}
        return [*map(self._handed, handed), status(204, "EOB", **pending)]

    def _handed(self, sequence: int) -> Answer:
        head = f"NATS/1.0\r\nNats-Sequence: {sequence}\r\n\r\n"
        return Answer(head, self.messages[sequence][1])

    def _next(self, consumer: str) -> Answer:
        if consumer not in self.consumers:
            return status(503)
        found = [n for n in self._of(f"queues.{consumer}") if n not in self.out]
        if not found:
            return status(404)
        self.out.append(found[0])
        self.handed += 1
        at = f"$JS.ACK.queues.{consumer}.{found[0]}"
        subject, body = self.messages[found[0]]
        return Answer("", body, at, subject)

    def _acknowledge(self, sequence: int) -> Answer:
        if sequence in self.out:
            self.out.remove(sequence)
            del self.messages[sequence]
        return Answer("", b"")

    def _list(self) -> Answer:
        names = sorted(self.consumers)
        told = {"num_ack_pending": len(self.out), "delivered": {"consumer_seq": self.handed}}
        listed = [{"name": name, **told} for name in names[:1]]
        return _told({"total": len(names), "consumers": listed or None})

    def _of(self, subject: str) -> list[int]:
        return [n for n, (name, _) in self.messages.items() if name == subject]


def _told(content: dict[str, Any]) -> Answer:
    return Answer("", json.dumps(content).encode())


def _framed(inbox: str, answer: Answer) -> bytes:
    head, body, reply_to, subject = answer
    total = len(head) + len(body)
    place = f"{subject or inbox} 1 {reply_to}"
    sizes = f"HMSG {place} {len(head)} {total}" if head else f"MSG {place} {total}"
    return f"{sizes}\r\n{head}".encode() + body + b"\r\n"
