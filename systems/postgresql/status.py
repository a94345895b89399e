"""Questions to a node's server, from a thread: whether it leads, and how far it is."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.runtime import Address
from splitbrain.systems.asyncpg_library import connected, library
from splitbrain.systems.postgresql.client import LOGIN

#: Positions are bytes of the log (LSN) from its beginning; a standby's is that of what it shows.
_VIEW: Final = """
SELECT is_standby,
    CASE WHEN is_standby THEN timeline_id
        -- The name of a file of the log begins with it: eight digits, hexadecimal.
        ELSE 256 * get_byte(decode(left(pg_walfile_name(pg_current_wal_lsn()), 8), 'hex'), 2)
            + get_byte(decode(left(pg_walfile_name(pg_current_wal_lsn()), 8), 'hex'), 3)
        END AS timeline_id,
    (CASE WHEN is_standby THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END
        - '0/0'::pg_lsn)::bigint AS position,
    (SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming') AS streams,
    (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum'))
        AS sync_streams
FROM pg_is_in_recovery() AS is_standby, pg_control_checkpoint()
"""


class NodeView(msgspec.Struct, frozen=True):
    """A server, as it sees itself."""

    is_standby: bool
    #: Timeline that it writes, or of its last checkpoint; a promotion begins a new one.
    timeline_id: int
    #: Bytes.
    position: int
    #: Standbys that stream from it, and those that commits may wait for.
    streams: int
    sync_streams: int

    @property
    def leads(self) -> bool:
        """Whether it takes changes."""
        return not self.is_standby

    @property
    def epoch(self) -> int:
        """Its timeline."""
        return self.timeline_id


def ask(there: Address, timeout_s: float) -> NodeView | None:
    """Return a server's view; None where it does not tell it in time."""

    async def look(connection: Any) -> NodeView:
        (row,) = await connection.fetch(_VIEW)
        return msgspec.convert(dict(row), NodeView)

    return _asked(there, timeout_s, look)


def make_tables(there: Address, tables: Sequence[str], timeout_s: float) -> bool:
    """Make tables that are not there yet; return whether all are there now."""

    async def make(connection: Any) -> bool:
        for table in tables:
            await connection.execute(table)
        return True

    return bool(_asked(there, timeout_s, make))


def _asked(there: Address, timeout_s: float, look: Any) -> Any:
    found = library("a client of PostgreSQL")

    async def connect_and_look() -> Any:
        async with asyncio.timeout(timeout_s):
            connection = await connected(there, LOGIN, timeout_s)
            try:
                return await look(connection)
            finally:
                connection.terminate()

    try:
        return asyncio.run(connect_and_look())
    except (
        OSError,  # a TimeoutError is one
        EOFError,
        found.PostgresError,
        found.InterfaceError,
        found.InternalClientError,
        *UNREADABLE,
    ):
        return None
