#!/usr/bin/env python3
"""Look along one link from inside a pod: does what leaves here arrive there, and is it answered?

Usage: ``probe.py connect ADDRESS PORT TIMEOUT_S`` opens a connection, closes its sending half and
waits until the other side notices: any server that runs does, a frozen one does not, and no
knowledge of its protocol is needed.
``probe.py count PORT TIMEOUT_S`` counts numbered datagrams, answers each by a small one, and ends
when told by ``probe.py end PORT`` from the same network; ``probe.py await PORT TIMEOUT_S`` waits
until it is there. ``probe.py stream ADDRESS PORT PROBES LARGE_BYTES TIMEOUT_S`` sends them, small
and large in turn, and waits for the answers. Each prints one line of JSON: what arrived in which
order and how fast; the round trips. Together they see one direction alone, which a connection
never does.

The others print one word. Exit codes: 0 yes, 1 no, 64 bad usage.
"""

import contextlib
import json
import select
import socket
import struct
import sys
import time

_END = b"end"
_KNOCK = b"knock"
#: Between two knocks where nobody answers.
_KNOCK_S = 0.02
_LOOPBACK = "127.0.0.1"
_NUMBER = struct.Struct(">Q")
_SMALL_BYTES = 40
#: Between two probes: fast enough to fill a link of up to two megabits.
_INTERVAL_S = 0.002
#: Late probes that are sent at once, at most.
_MADE_UP_FOR = 3
#: After the last answer and twice the longest round trip nothing more is expected.
_QUIET_S = 0.3
_BUFFER_BYTES = 4 * 1024 * 1024
_HEADERS_BYTES = 28


def connect(address: str, port: int, timeout_s: float) -> str:
    """``answered``, or why not: ``refused``, ``silent`` (opened only), ``timeout``, an error."""
    deadline = time.monotonic() + timeout_s
    try:
        connection = socket.create_connection((address, port), timeout=timeout_s)
    except ConnectionRefusedError:
        return "refused"
    except TimeoutError:
        return "timeout"
    except OSError as error:
        return f"error-{error.errno}"
    with connection:
        try:
            connection.shutdown(socket.SHUT_WR)
            while True:
                connection.settimeout(max(0.001, deadline - time.monotonic()))
                if not connection.recv(4096):
                    return "answered"
        except TimeoutError:
            return "silent"
        except OSError:
            return "answered"  # a reset comes from the other side too


def count(port: int, timeout_s: float) -> dict[str, object]:
    """Numbers in the order of arrival, and kilobits a second from the first to the last."""
    order: list[int] = []
    sizes: list[int] = []
    first_s = last_s = 0.0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        receiver.bind(("", port))
        deadline = time.monotonic() + timeout_s
        while (left_s := deadline - time.monotonic()) > 0:
            receiver.settimeout(left_s)
            try:
                content, sender = receiver.recvfrom(65536)
            except TimeoutError:
                break
            if content == _END and sender[0] == _LOOPBACK:
                break
            if content == _KNOCK:
                receiver.sendto(_KNOCK, sender)
                continue
            if len(content) < _NUMBER.size:
                continue
            last_s = time.monotonic()
            first_s = first_s or last_s
            order.append(_NUMBER.unpack_from(content)[0])
            sizes.append(len(content) + _HEADERS_BYTES)
            receiver.sendto(content[:_SMALL_BYTES], sender)
    bits = 8 * sum(sizes[1:])
    return {"order": order, "kbit": bits / 1000 / (last_s - first_s) if bits else None}


def stream(
    address: str, port: int, probes: int, large_bytes: int, timeout_s: float
) -> dict[str, object]:
    """Round trips in milliseconds, of the probes whose answers came in time."""
    sent: list[float] = []
    trips: dict[int, float] = {}
    due = time.monotonic()
    deadline = due + timeout_s
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        while (now := time.monotonic()) < deadline and len(trips) < probes:
            if len(sent) < probes and now >= due:
                number = len(sent)
                size = large_bytes if number % 2 else _SMALL_BYTES
                # A slow link's queue may be full: such a probe is lost as any other.
                with contextlib.suppress(BlockingIOError):
                    sender.sendto(_NUMBER.pack(number).ljust(size, b"."), (address, port))
                sent.append(now)
                # After a long wait for the processor a flood would measure its own queue.
                due = max(due + _INTERVAL_S, now - _MADE_UP_FOR * _INTERVAL_S)
                continue
            until = due if len(sent) < probes else deadline
            if len(sent) == probes and trips:
                until = min(deadline, sent[-1] + 2 * max(trips.values()) + _QUIET_S)
                if now >= until:
                    break
            if select.select([sender], [], [], max(0.0, until - now))[0]:
                content, source = sender.recvfrom(65536)
                # Late answers to a knock come to whoever has its port by now.
                if source[1] == port and len(content) >= _NUMBER.size:
                    number = _NUMBER.unpack_from(content)[0]
                    trips.setdefault(number, time.monotonic() - sent[number])
    return {"sent": len(sent), "trips_ms": [trip * 1000 for trip in trips.values()]}


def await_count(port: int, timeout_s: float) -> str:
    """``answered`` once somebody counts at this port in the same network, else ``timeout``."""
    deadline = time.monotonic() + timeout_s
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.settimeout(_KNOCK_S)
        while time.monotonic() < deadline:
            sender.sendto(_KNOCK, (_LOOPBACK, port))
            # No connection: a port where nobody listens is told to nobody.
            with contextlib.suppress(TimeoutError):
                sender.recv(16)
                return "answered"
    return "timeout"


def end(port: int) -> str:
    """``sent``: who counts at this port in the same network may stop."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(_END, (_LOOPBACK, port))
    return "sent"


def main(arguments: list[str]) -> int:
    """Do what the first argument says."""
    match arguments:
        case ["connect", address, port, timeout_s]:
            word = connect(address, int(port), float(timeout_s))
        case ["await", port, timeout_s]:
            word = await_count(int(port), float(timeout_s))
        case ["end", port]:
            word = end(int(port))
        case ["count", port, timeout_s]:
            print(json.dumps(count(int(port), float(timeout_s))))
            return 0
        case ["stream", address, port, probes, large_bytes, timeout_s]:
            numbers = (int(port), int(probes), int(large_bytes))
            print(json.dumps(stream(address, *numbers, float(timeout_s))))
            return 0
        case _:
            print(__doc__, file=sys.stderr)
            return 64
    print(word)
    return 0 if word in {"answered", "sent"} else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
