"""Loopback addresses of a run's own for nodes that are plain processes.

All of 127.0.0.0/8 is this machine, so every node can have an address of its own and its usual port
numbers. An address is taken by holding a socket with a name in the kernel's abstract namespace:
two runs never get the same one, and nothing is left when a run dies.
"""

import secrets
import socket
from collections.abc import Iterable
from typing import Final

from splitbrain.contracts.errors import HarnessError

_TRIES: Final = 1000


class TakenAddress:
    """One address, ours until released or until this process ends."""

    def __init__(self, host: str, holder: socket.socket) -> None:
        self.host = host
        self._holder = holder

    def release(self) -> None:
        """Somebody else may have it. Safe to call twice."""
        self._holder.close()


def take_address(ports: Iterable[int]) -> TakenAddress:
    """Return an address on which nobody listens at these ports.

    Raises:
        HarnessError: none was found.
    """
    wanted = list(ports)
    for _ in range(_TRIES):
        # 127.0.x.y has what people type by hand.
        second, third, fourth = (1 + secrets.randbelow(254) for _ in range(3))
        host = f"127.{second}.{third}.{fourth}"
        holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            holder.bind(f"\0splitbrain/{host}")
            if all(_is_free(host, port) for port in wanted):
                return TakenAddress(host, holder)
        except OSError:
            pass
        holder.close()
    raise HarnessError(
        "find an address for a node",
        "127.0.0.0/8",
        f"something listens at port {' or '.join(map(str, wanted))} on every address tried",
        "Stop it, or use --runtime docker.",
    )


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        # As servers do it: what an earlier life's connections left must not keep anybody away.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
