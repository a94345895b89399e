#!/usr/bin/env python3
"""Look along one link from inside a pod: does what leaves here arrive there, and is it answered?

Usage: ``probe.py connect ADDRESS PORT TIMEOUT_S`` opens a connection, closes its sending half and
waits until the other side notices: any server that runs does, a frozen one does not, and no
knowledge of its protocol is needed.
``probe.py listen PORT TIMEOUT_S`` waits for one datagram, ``probe.py send ADDRESS PORT`` sends
one: together they see one direction alone, which a connection never does.

Prints one word. Exit codes: 0 yes, 1 no, 64 bad usage.
"""

import socket
import sys
import time


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


def listen(port: int, timeout_s: float) -> str:
    """``received`` when a datagram came in time, else ``nothing``."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("", port))
        receiver.settimeout(timeout_s)
        try:
            receiver.recv(16)
        except TimeoutError:
            return "nothing"
        return "received"


def send(address: str, port: int) -> str:
    """``sent``; whether it arrived only the other side knows."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"splitbrain", (address, port))
    return "sent"


def main(arguments: list[str]) -> int:
    """Do what the first argument says."""
    match arguments:
        case ["connect", address, port, timeout_s]:
            word = connect(address, int(port), float(timeout_s))
        case ["listen", port, timeout_s]:
            word = listen(int(port), float(timeout_s))
        case ["send", address, port]:
            word = send(address, int(port))
        case _:
            print(__doc__, file=sys.stderr)
            return 64
    print(word)
    return 0 if word in {"answered", "received", "sent"} else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
