"""Operations that a workload asks of a client, and the client's answer."""

from typing import Any, Literal, Protocol

import msgspec

#: ok: happened; fail: certainly did not happen; info: unknown (design, section 4).
Outcome = Literal["ok", "fail", "info"]


class Operation(msgspec.Struct, frozen=True):
    """One operation, a function of (seed, worker slot, n) alone."""

    #: Kind: ``read``, ``write``, ``cas``, ``add``, ...
    f: str
    #: Register or set that it works on; None where the workload has one object only.
    key: str | None
    #: write: the value; cas: ``[expected, new]``; add: the element; read: None.
    value: Any


class Completion(msgspec.Struct, frozen=True):
    """A client's knowledge of an operation's outcome."""

    type: Outcome
    #: ok only. read: the value read (None: never written; a list for sets); write and add: the
    #: value written; cas: ``[expected, new, succeeded]``. create: ``[number, created]``; delete:
    #: whether there was a topic; describe: its number of partitions, None where there is no topic;
    #: view: ``[number or None, offset]``, the offset one past the last record that the node has
    #: applied.
    value: Any = None
    #: Error class of the system's error table, kebab-case; None for ok.
    error: str | None = None
    #: Where the system placed the operation, ``[epoch, offset]``; None where it does not say.
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
