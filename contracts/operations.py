"""Operations that a workload asks of a client, and the client's answer."""

from typing import Any, Final, Literal, Protocol

import msgspec

#: ok: happened; fail: certainly did not happen; info: unknown (design, section 4).
Outcome = Literal["ok", "fail", "info"]
#: Answers in a row, at one member, by which a queue is held to be empty at the end: what was handed
#: out and never acknowledged may come back after the first.
EMPTIES_IN_A_ROW: Final = 3


class Operation(msgspec.Struct, frozen=True):
    """One operation, a function of (seed, worker slot, n) alone."""

    #: Kind: ``read``, ``write``, ``cas``, ``add``, ...
    f: str
    #: Register or set that it works on; None where the workload has one object only.
    key: str | None
    #: write: the value; cas: ``[expected, new]``; add, enqueue: the element; read, dequeue: None;
    #: transfer: ``[from, to, amount]``; txn: ``["r", name, None]`` and ``["w", name, value]``;
    #: acquire, release: the holder; guarded write: ``[token, value]``.
    value: Any
    #: Whether it is asked after the last heal, when nothing else is; set for the client alone.
    final: bool = False
    #: Of a final one that takes: it is asked again until it answered null so often.
    drains: bool = False


class Completion(msgspec.Struct, frozen=True):
    """A client's knowledge of an operation's outcome."""

    type: Outcome
    #: ok only. read: the value read (None: never written; a list for sets; of a bank balances by
    #: account); write, put, append, add and enqueue: the value written; dequeue: the element, None
    #: where the queue was empty; cas: ``[expected, new, succeeded]``; transfer: ``[from, to,
    #: amount, done]``; add-and-get: the sum; txn: its parts, with what they read in its place;
    #: acquire, release: whether it was done, or the token of a lease; guarded write: ``[token,
    #: value, accepted]``; generate: the id. create: ``[number, created]``; delete: whether there
    #: was a topic; describe: its number of partitions, None where there is no topic; view:
    #: ``[number or None, offset]``, the offset one past the last record that the node has applied.
    value: Any = None
    #: Error class of the system's error table, kebab-case; None for ok.
    error: str | None = None
    #: Where the system placed the operation, ``[epoch, offset]``, or ``[NO_EPOCH, revision]``; None
    #: where it does not say.
    position: tuple[int, int] | None = None
    #: Node that answered, where known.
    node: str | None = None


class Client(Protocol):
    """One connection's worth of a system under test, used by one worker slot at a time."""

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        """Perform one operation; never raises for the system's faults, they are outcomes.

        A write that timed out or whose connection broke after sending is ``info``; a timed-out
        pure read is ``fail``: an adapter that cannot know that an operation only reads says
        ``info``, and the caller, who knows what the workload declares, makes ``fail`` of it. After
        either the caller closes the client: a late answer must never meet a later operation.
        """
        ...

    async def close(self) -> None:
        """Drop the connection without waiting for outstanding answers."""
        ...
