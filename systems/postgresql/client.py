"""A workload's client of PostgreSQL: each operation is one transaction, on one connection.

Nothing of a transaction is left unless its COMMIT was sent, so that all that goes wrong before that
is ``fail``. Of a COMMIT an error of the server says that it was rolled back, but for those that end
the connection; a missing answer says nothing, and neither does a COMMIT with a warning: the server
stopped waiting for its standbys, and others may read what a failover takes back.

Must never send a COMMIT twice. Sources: PostgreSQL's manual, 27.2.8 (synchronous replication) and
appendix A (error codes); patroni#1412.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.runtime import Address
from splitbrain.systems.asyncpg_library import connected, library
from splitbrain.systems.postgresql.statements import LOOK_OF_LONG, Statements
from splitbrain.systems.rows import OF_KEYS, only_looks
from splitbrain.systems.servers import Refused, Unclear
from splitbrain.systems.sql_client import SqlClient

LOGIN: Final = {"user": "postgres", "database": "postgres"}
#: Longest wait for a connection while nothing else ends it.
_CONNECT_TIMEOUT_S: Final = 5.0
#: Longest wait for a COMMIT where it is cancelled then.
_COMMIT_PATIENCE_S: Final = 0.3
_NOTHING: Final = "SELECT 1"
_HASTY: Final = "SET LOCAL synchronous_commit TO off"
_SERIALIZATION_FAILURE, _DEADLOCK = "40001", "40P01"
#: Codes with a name of their own in histories.
_CLASSES: Final[Mapping[str, str]] = {
    _SERIALIZATION_FAILURE: "serialization-failure",
    _DEADLOCK: "deadlock",
    "23505": "unique-violation",
    "25006": "standby",
    "57014": "cancelled",
}
#: Classes and codes of errors with which a COMMIT is certainly undone.
_ROLLED_BACK: Final = ("22", "23", "25", "42", "53", "54", "55", "40001", "40P01")
#: Severities after which the server ends the connection.
_ENDING: Final = ("FATAL", "PANIC")
#: Names of the levels in SQL, by the values of the setting.
ISOLATIONS: Final[Mapping[str, str]] = {
    "serializable": "SERIALIZABLE",
    "repeatable-read": "REPEATABLE READ",
    "read-committed": "READ COMMITTED",
}


class Manner(msgspec.Struct, frozen=True):
    """How the clients of a run ask."""

    workload: str | None
    #: One of ``ISOLATIONS``.
    isolation: str
    #: Whether standbys are asked, by clients that are pinned to them.
    reads_anywhere: bool
    inserts_first: bool
    #: Longest wait before each part of a transaction of several, in seconds.
    think_time_s: float = 0.0
    #: Whether each client keeps a serializable transaction open on a connection of its own.
    holds_open: bool = False
    #: Whether a client has the server stop where a COMMIT takes long; else it is left to wait.
    cancels: bool = False
    #: Whether every other transaction of a client is acknowledged before it is on any disk.
    mixes_commits: bool = False


class PostgresClient(SqlClient):
    """Client of one node, or of the first of several that is no standby."""

    def __init__(self, nodes: Mapping[NodeName, Address], manner: Manner) -> None:
        super().__init__(nodes)
        self._manner = manner
        self._statements = Statements(
            manner.workload,
            inserts_first=manner.inserts_first,
            think_time_s=manner.think_time_s,
        )
        #: Of the transaction that stays open.
        self._held: Any = None
        self._library = library("a client of PostgreSQL")
        self._is_warned = False
        self._is_hasty = False

    def _errors_of_connections(self) -> tuple[type[Exception], ...]:
        found = self._library
        return (found.InterfaceError, found.InternalClientError, found.PostgresError)

    def _is_closed(self, connection: Any) -> bool:
        return connection.is_closed()

    def _drop(self, connection: Any) -> None:
        connection.terminate()

    async def _opened(self, there: Address) -> Any:
        try:
            connection = await connected(there, LOGIN, _CONNECT_TIMEOUT_S)
        except self._errors_of_connections() as error:
            raise ConnectionError from error
        if len(self._nodes) > 1 and _is_standby(connection):
            connection.terminate()
            raise ConnectionError
        connection.add_log_listener(self._take_note)
        if self._manner.holds_open and (self._held is None or self._held.is_closed()):
            self._held = await self._opened_for_long(there)
        return connection

    async def _opened_for_long(self, there: Address) -> Any:
        """Return a connection with a serializable transaction that has read and may write."""
        held = await connected(there, LOGIN, _CONNECT_TIMEOUT_S)
        await held.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
        await held.execute(LOOK_OF_LONG)
        return held

    async def close(self) -> None:
        """Drop the connections without waiting for outstanding answers."""
        await super().close()
        if self._held is not None:
            self._held.terminate()
        self._held = None

    def _take_note(self, _connection: Any, message: Any) -> None:
        self._is_warned |= message.severity == "WARNING"

    async def _transacted(self, operation: Operation) -> Any:
        """Perform it; again where nothing was done and nobody is to learn of that."""
        while True:
            try:
                return await self._transact(operation)
            except self._library.PostgresConnectionError:
                raise
            except self._library.PostgresError as error:
                code = str(error.sqlstate)
                problem = _CLASSES.get(code, f"sql-{code}".lower())
                if getattr(error, "severity", None) in _ENDING:
                    raise Unclear(problem) from error
                if self._commit_is_sent and not code.startswith(_ROLLED_BACK):
                    raise Unclear(problem) from error
                self._commit_is_sent = False
                await self._connection.execute("ROLLBACK")
                is_told = self._manner.workload in OF_KEYS
                if is_told or code not in (_SERIALIZATION_FAILURE, _DEADLOCK):
                    raise Refused(problem) from error

    async def _transact(self, operation: Operation) -> Any:
        connection, isolation = self._connection, self._manner.isolation
        if _is_standby(connection):
            if not (self._manner.reads_anywhere and only_looks(operation)):
                raise Refused("standby")
            # Standbys refuse to be serializable.
            isolation = "repeatable-read" if isolation == "serializable" else isolation
        begin = f"BEGIN ISOLATION LEVEL {ISOLATIONS[isolation]}"
        self._is_hasty = self._manner.mixes_commits and not self._is_hasty
        if self._is_hasty:
            begin = f"{begin}; {_HASTY}"
        await connection.execute(begin)
        value = await self._statements.perform(connection, operation)
        self._is_warned = False
        self._commit_is_sent = True
        await self._commit(connection)
        if self._is_warned:
            raise Unclear("not-replicated")
        return value

    async def _commit(self, connection: Any) -> None:
        if not self._manner.cancels:
            # A connection that is dropped tells the server nothing: it goes on waiting.
            await connection.execute("COMMIT")
            return
        try:
            await connection.execute("COMMIT", timeout=_COMMIT_PATIENCE_S)
        except TimeoutError:
            # The library has told the server to stop; another statement waits for what it answers.
            await connection.execute(_NOTHING)
            raise Unclear("cancelled") from None


class ReadsHereClient:
    """Client that reads at one node, and asks the primary for all that changes something."""

    def __init__(self, here: PostgresClient, primary: PostgresClient) -> None:
        self._here, self._primary = here, primary

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        """Perform one operation; see ``contracts.operations.Client``."""
        client = self._here if only_looks(operation) else self._primary
        return await client.invoke(operation, timeout_s)

    async def close(self) -> None:
        """Drop both connections."""
        await self._here.close()
        await self._primary.close()


def _is_standby(connection: Any) -> bool:
    """Whether the server is one, by what it tells its clients unasked.

    Servers before 14 do not tell it; here these have no standbys.
    """
    return getattr(connection.get_settings(), "in_hot_standby", "off") == "on"
