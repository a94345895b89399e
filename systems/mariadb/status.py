"""Questions to a node's server, from a thread: whether it is part of the cluster, and how far."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.runtime import Address
from splitbrain.systems.mariadb.library import asked, connected, library

_STATUS: Final = "SHOW GLOBAL STATUS LIKE 'wsrep\\_%%'"


class NodeView(msgspec.Struct, frozen=True, rename=lambda name: f"wsrep_{name}"):
    """A server, as it sees itself: variables of Galera's by their names."""

    #: ``ON``: it serves.
    ready: str
    #: ``Primary`` or ``non-Primary``.
    cluster_status: str
    cluster_size: int
    local_state_comment: str
    #: Number of the last transaction of the cluster that it committed.
    last_committed: int
    local_cert_failures: int
    local_bf_aborts: int

    @property
    def problem(self) -> str | None:
        """Reason for which it does not take part; None where it does."""
        if self.cluster_status != "Primary":
            return f"is in a component that is {self.cluster_status}"
        if self.local_state_comment != "Synced":
            return f"is {self.local_state_comment}"
        return None if self.ready == "ON" else "is Synced, and not ready"


def ask(there: Address, timeout_s: float) -> NodeView | None:
    """Return a server's view; None where it does not tell it in time."""

    async def look(connection: Any) -> NodeView:
        rows = await asked(connection, _STATUS)
        return msgspec.convert(dict(rows), NodeView, strict=False)

    return _asked(there, timeout_s, look)


def make_tables(there: Address, tables: Sequence[str], timeout_s: float) -> bool:
    """Make tables that are not there yet; return whether all are there now."""

    async def make(connection: Any) -> bool:
        for table in tables:
            await asked(connection, table)
        return True

    return bool(_asked(there, timeout_s, make))


def _asked(there: Address, timeout_s: float, look: Any) -> Any:
    found = library("a client of MariaDB")

    async def connect_and_look() -> Any:
        async with asyncio.timeout(timeout_s):
            connection = await connected(there, timeout_s)
            try:
                return await look(connection)
            finally:
                connection.close()

    try:
        return asyncio.run(connect_and_look())
    except (OSError, EOFError, found.Error, *UNREADABLE):  # a TimeoutError is an OSError
        return None
