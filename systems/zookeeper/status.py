"""Questions to one server by four-letter words: its role, its figures, digests of its data.

Blocking. Must never be called from an event loop's thread.
"""

import contextlib
import socket
import time
from collections.abc import Sequence
from typing import Final

import msgspec

from splitbrain.contracts.member_digest import MemberDigest
from splitbrain.contracts.runtime import Address

#: Modes of a server that serves, as ``srvr`` tells them.
LEADER: Final = "leader"
FOLLOWER: Final = "follower"
#: A server without others.
STANDALONE: Final = "standalone"
_LEADS: Final = frozenset({LEADER, STANDALONE})
_CHUNK_BYTES: Final = 65536


class ServerView(msgspec.Struct, frozen=True):
    """One server that serves, as it sees itself."""

    mode: str
    #: Last transaction that it has applied.
    zxid: int

    @property
    def leads(self) -> bool:
        """Whether it believes that it leads."""
        return self.mode in _LEADS

    @property
    def epoch(self) -> int:
        """Epoch of the leader that ordered its last transaction."""
        return self.zxid >> 32


def ask_word(there: Address, word: str, timeout_s: float) -> str | None:
    """Return the answer to a four-letter word; None where there is none in time."""
    deadline = time.monotonic() + timeout_s
    answer = b""
    with (
        contextlib.suppress(OSError),
        socket.create_connection((there.host, there.port), timeout_s) as connection,
    ):
        connection.sendall(word.encode())
        while (remaining_s := deadline - time.monotonic()) > 0:
            connection.settimeout(remaining_s)
            chunk = connection.recv(_CHUNK_BYTES)
            if not chunk:
                return answer.decode(errors="replace") or None
            answer += chunk
    return None


def ask_view(there: Address, timeout_s: float) -> ServerView | None:
    """Return the view of a server that serves; None of any other."""
    answer = ask_word(there, "srvr", timeout_s)
    return None if answer is None else view_of(answer)


def view_of(answer: str) -> ServerView | None:
    """Return the view that an answer to ``srvr`` tells; None where the server does not serve."""
    told = dict(line.split(": ", 1) for line in answer.splitlines() if ": " in line)
    mode, zxid = told.get("Mode"), told.get("Zxid")
    if mode is None or zxid is None:
        return None
    return ServerView(mode, int(zxid, 16))


def figures_of(answer: str) -> dict[str, float]:
    """Return the numbers that an answer to ``mntr`` tells, by their own names without ``zk_``."""
    figures: dict[str, float] = {}
    for line in answer.splitlines():
        name, _, value = line.partition("\t")
        with contextlib.suppress(ValueError):
            figures[name.removeprefix("zk_")] = float(value)
    return figures


def digests_of(answer: str) -> Sequence[MemberDigest]:
    """Return the digests of a server's data that an answer to ``hash`` tells, the newest last.

    A line is a transaction in hexadecimal, and the digest of all data as they were after it.
    """
    lines = (line.split(":") for line in answer.splitlines())
    told: list[MemberDigest] = []
    for parts in lines:
        with contextlib.suppress(ValueError):
            zxid, digest = parts
            told.append(MemberDigest(int(zxid, 16), str(int(digest))))
    return told
