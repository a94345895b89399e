#!/usr/bin/env python3
"""Hold, overtake and double packets in user space, for kernels without netem; one per node.

Takes packets from a netfilter queue of its own network, looks up the sender in a table, and lets
each packet on when its time has come. Packets are never changed. When it dies the kernel drops
what it held and lets everything else pass (``--queue-bypass``); when it is told to stop, it lets
everything on first.

Usage: ``packet_queue.py``. It prints one line, ``ready`` or why not, and then listens in the
abstract namespace of Unix sockets, which is a network's own. A request is one packet of JSON:
``{"table": {ADDRESS: {"delay_us": D, "jitter_us": J, "reorder": R, "duplicate": D}}}`` replaces
the table, ``{}`` only looks, ``{"stop": true}`` ends the program; the answer tells its process
and the table.

Chance is not seeded: which packet is hit cannot be repeated.

Sources: linux/netfilter/nfnetlink_queue.h, netlink(7), raw(7).
"""

import contextlib
import errno
import heapq
import json
import os
import random
import select
import socket
import struct
import sys
import time

CONTROL = "\0splitbrain/packet-queue"
PATIENCE_S = 10.0

_NETFILTER = 12
_QUEUE_MESSAGES = 3 << 8
_PACKET, _VERDICT, _CONFIGURE = (_QUEUE_MESSAGES | kind for kind in (0, 1, 2))
_REQUEST, _ACKNOWLEDGE = 1, 4
_ERROR = 2
_ACCEPT = 1
#: Attributes of packets.
_PACKET_HEADER, _VERDICT_HEADER, _PAYLOAD = 1, 2, 10
#: Attributes of the configuration, and what goes into them.
_COMMAND, _PARAMETERS, _LENGTH_MAX, _MASK, _FLAGS = 1, 2, 3, 4, 5
_BIND = 1
_COPY_PACKETS = 2
_FAIL_OPEN = 1

_PACKETS_MAX = 60_000
_BUFFER_BYTES = 32 * 1024 * 1024
_RECEIVE_BYTES = 128 * 1024
_SO_RCVBUFFORCE = 33
#: Taken before due ones are looked for again.
_AT_ONCE = 64
_NS_PER_US = 1_000

_MESSAGE = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_WHOLE_VERDICT = struct.Struct("=IHHIIBBHHH4sI")


class Table:
    """The table of a link program: for each sender, the treatment of its packets."""

    def __init__(self) -> None:
        self.shown: dict[str, dict[str, float]] = {}
        self._by_address: dict[bytes, tuple[float, float, float, float]] = {}

    def replace(self, table: dict[str, dict[str, float]]) -> None:
        """From now on this."""
        self.shown = table
        self._by_address = {
            socket.inet_aton(address): (
                quality.get("delay_us", 0) * _NS_PER_US,
                quality.get("jitter_us", 0) * _NS_PER_US,
                quality.get("reorder", 0.0),
                quality.get("duplicate", 0.0),
            )
            for address, quality in table.items()
        }

    def has(self, sender: bytes) -> bool:
        """Whether this sender's packets meet anything."""
        return sender in self._by_address

    def fate(self, sender: bytes, chance: random.Random) -> tuple[int, bool]:
        """Nanoseconds that a packet waits, and whether it comes twice."""
        quality = self._by_address.get(sender)
        if quality is None:
            return 0, False
        delay, jitter, reorder, duplicate = quality
        if reorder and chance.random() < reorder:
            wait = 0
        else:
            wait = int(delay + jitter * (2 * chance.random() - 1)) if jitter else int(delay)
        return max(0, wait), bool(duplicate) and chance.random() < duplicate


class Queue:
    """The kernel's queue, and the packets that wait."""

    def __init__(self, number: int) -> None:
        """Raise OSError where the kernel refuses."""
        self._number = number
        self._chance = random.Random()
        self.table = Table()
        #: When it is due, its number, its sender, and its bytes where it comes twice.
        self._waiting: list[tuple[int, int, bytes, bytes]] = []
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETFILTER)
        self.socket.bind((0, 0))
        for option in (_SO_RCVBUFFORCE, socket.SO_RCVBUF):
            try:
                self.socket.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
            except OSError:
                continue
            break
        self._doubles = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self._configure(_COMMAND, struct.pack(">BBH", _BIND, 0, socket.AF_INET))
        self._configure(_PARAMETERS, struct.pack(">IB", 0xFFFF, _COPY_PACKETS))
        self._configure(_LENGTH_MAX, struct.pack(">I", _PACKETS_MAX))
        # Rather let packets pass undelayed than lose them.
        flags = _attribute(_FLAGS, struct.pack(">I", _FAIL_OPEN))
        self._configure(_MASK, struct.pack(">I", _FAIL_OPEN), flags)
        self.socket.setblocking(False)

    def _configure(self, kind: int, value: bytes, more: bytes = b"") -> None:
        body = struct.pack(">BBH", socket.AF_UNSPEC, 0, self._number)
        body += _attribute(kind, value) + more
        length = _MESSAGE.size + len(body)
        head = _MESSAGE.pack(length, _CONFIGURE, _REQUEST | _ACKNOWLEDGE, 0, 0)
        self.socket.send(head + body)
        answer = self.socket.recv(_RECEIVE_BYTES)
        kind_of_answer = _MESSAGE.unpack_from(answer)[1]
        code = struct.unpack_from("=i", answer, _MESSAGE.size)[0] if kind_of_answer == _ERROR else 0
        if code:
            raise OSError(-code, os.strerror(-code))

    def close(self) -> None:
        """Give the queue back; its number is free again."""
        self.socket.close()
        self._doubles.close()

    def take(self) -> None:
        """Look at what has come, and let on what need not wait."""
        now = time.monotonic_ns()
        passing: list[bytes] = []
        for _ in range(_AT_ONCE):
            try:
                message = self.socket.recv(_RECEIVE_BYTES)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                continue  # the kernel lets on what did not fit
            number, payload = _packet(message)
            if number is None:
                continue
            wait, is_doubled = self.table.fate(payload[12:16], self._chance)
            double = payload if is_doubled else b""
            if wait:
                heapq.heappush(self._waiting, (now + wait, number, payload[12:16], double))
            else:
                passing.append(self._verdict(number))
                self._double(double)
        if passing:
            self.socket.send(b"".join(passing))

    def replace(self, table: dict[str, dict[str, float]]) -> None:
        """Use this table from now on, and let on what waits of senders that are in it no more."""
        self.table.replace(table)
        in_order = sorted(self._waiting)
        self._waiting = [packet for packet in in_order if not self.table.has(packet[2])]
        self.let_on(None)
        self._waiting = [packet for packet in in_order if self.table.has(packet[2])]

    def let_on(self, now: int | None) -> None:
        """Let on what is due by now (monotonic, nanoseconds), or everything, in its order."""
        passing: list[bytes] = []
        while self._waiting and (now is None or self._waiting[0][0] <= now):
            _, number, _, double = heapq.heappop(self._waiting)
            passing.append(self._verdict(number))
            self._double(double)
            if len(passing) == _AT_ONCE:
                self.socket.send(b"".join(passing))
                passing.clear()
        if passing:
            self.socket.send(b"".join(passing))

    def due_in_s(self) -> float | None:
        """Until the next one is due; None: nothing waits."""
        if not self._waiting:
            return None
        return max(0.0, (self._waiting[0][0] - time.monotonic_ns()) / 1e9)

    def _verdict(self, number: int) -> bytes:
        # Without the flag of a request the kernel takes no notice, and says nothing.
        size = _WHOLE_VERDICT.size
        number_of_queue = socket.htons(self._number)
        return _WHOLE_VERDICT.pack(
            size, _VERDICT, _REQUEST, 0, 0,
            socket.AF_UNSPEC, 0, number_of_queue,
            12, _VERDICT_HEADER, struct.pack(">I", _ACCEPT), socket.htonl(number),
        )  # fmt: skip

    def _double(self, packet: bytes) -> None:
        if not packet:
            return
        # To an address of this network: it comes in again by the loopback interface. One that
        # cannot be sent is none.
        with contextlib.suppress(OSError):
            self._doubles.sendto(packet, (socket.inet_ntoa(packet[16:20]), 0))


def _attribute(kind: int, value: bytes) -> bytes:
    padding = bytes(-len(value) % 4)
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value + padding


def _packet(message: bytes) -> tuple[int | None, bytes]:
    """Number and bytes of the packet in a message of the kernel; None: it holds none."""
    length, kind = _MESSAGE.unpack_from(message)[:2]
    number: int | None = None
    payload = b""
    if kind != _PACKET:
        return None, b""
    offset = _MESSAGE.size + 4
    while offset < length:
        size, kind = _ATTRIBUTE.unpack_from(message, offset)
        if kind == _PACKET_HEADER:
            (number,) = struct.unpack_from(">I", message, offset + 4)
        elif kind == _PAYLOAD:
            payload = message[offset + 4 : offset + size]
        offset += (size + 3) & ~3
    return number, payload


def ask(request: dict[str, object]) -> dict[str, object] | None:
    """Return the answer of the program that runs in this network; None: none runs."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
        line.settimeout(PATIENCE_S)
        try:
            line.connect(CONTROL)
            line.send(json.dumps(request).encode())
            answer = line.recv(_RECEIVE_BYTES)
        except (ConnectionError, FileNotFoundError):
            return None
    return json.loads(answer) if answer else None


def _answer(queue: Queue, listener: socket.socket) -> bool:
    """Do what somebody asks; whether to go on."""
    line, _ = listener.accept()
    with line:
        line.settimeout(PATIENCE_S)
        try:
            request = json.loads(line.recv(_RECEIVE_BYTES) or b"{}")
            if "table" in request:
                queue.replace(request["table"])
            is_last = bool(request.get("stop"))
            if is_last:
                queue.let_on(None)
            line.send(json.dumps({"process": os.getpid(), "table": queue.table.shown}).encode())
        except OSError:
            return True  # whoever asked has gone
    return not is_last


def serve(queue: Queue, listener: socket.socket) -> None:
    """Until told to stop."""
    goes_on = True
    while goes_on:
        ready, _, _ = select.select([queue.socket, listener], [], [], queue.due_in_s())
        if queue.socket in ready:
            queue.take()
        queue.let_on(time.monotonic_ns())
        if listener in ready:
            goes_on = _answer(queue, listener)


def main(number: int = 7) -> int:
    """Begin, say so, and serve."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        listener.bind(CONTROL)
        listener.listen(16)
        queue = Queue(number)
    except OSError as error:
        print(error, flush=True)
        return 1
    print("ready", flush=True)
    # Whoever started this waits for the end of its output.
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    serve(queue, listener)
    return 0


if __name__ == "__main__":
    sys.exit(main())
