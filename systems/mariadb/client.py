"""A workload's client of MariaDB: each operation is one transaction, on one connection.

Of a COMMIT the errors by which Galera refuses it (certification failed, the node is in no primary
component) say that it was rolled back; all others, and a missing answer, leave it open.

Sources: MariaDB's list of error codes; Galera's documentation, Certification-Based Replication.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Operation
from splitbrain.contracts.runtime import Address
from splitbrain.systems.mariadb.library import asked, connected, library, number_of
from splitbrain.systems.mariadb.statements import Statements
from splitbrain.systems.rows import OF_KEYS
from splitbrain.systems.servers import Refused, Unclear
from splitbrain.systems.sql_client import SqlClient

#: Longest wait for a connection while nothing else ends it.
_CONNECT_TIMEOUT_S: Final = 5.0
#: A deadlock, or a transaction that certification refused; a row that is newer than the snapshot.
_DEADLOCK, _RECORD_CHANGED = 1213, 1020
#: The node is in no primary component, or has not caught up.
_NOT_READY: Final = 1047
#: Codes with a name of their own in histories; a COMMIT that meets one of them is undone.
_CLASSES: Final[Mapping[int, str]] = {
    _DEADLOCK: "deadlock",
    _RECORD_CHANGED: "record-changed",
    _NOT_READY: "not-ready",
    1062: "duplicate-key",
    1205: "lock-wait",
}
#: Names of the levels in SQL, by the values of the setting.
ISOLATIONS: Final[Mapping[str, str]] = {
    "repeatable-read": "REPEATABLE READ",
    "serializable": "SERIALIZABLE",
    "read-committed": "READ COMMITTED",
}
_READY: Final = "SHOW STATUS LIKE 'wsrep_ready'"


class Manner(msgspec.Struct, frozen=True):
    """How the clients of a run ask."""

    workload: str | None
    #: One of ``ISOLATIONS``.
    isolation: str


class MariadbClient(SqlClient):
    """Client of one node, or of the first of several that is part of the cluster."""

    def __init__(self, nodes: Mapping[NodeName, Address], manner: Manner) -> None:
        super().__init__(nodes)
        self._manner = manner
        self._statements = Statements(manner.workload)
        self._library = library("a client of MariaDB")

    def _errors_of_connections(self) -> tuple[type[Exception], ...]:
        return (self._library.Error,)

    async def _opened(self, there: Address) -> Any:
        try:
            connection = await connected(there, _CONNECT_TIMEOUT_S)
        except self._library.Error as error:
            raise ConnectionError from error
        try:
            is_ready = await asked(connection, _READY) == [("wsrep_ready", "ON")]
            level = ISOLATIONS[self._manner.isolation]
            if is_ready:
                await asked(connection, f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        except self._library.Error:
            is_ready = False
        except BaseException:
            self._drop(connection)
            raise
        if not is_ready:
            self._drop(connection)
            raise ConnectionError
        return connection

    def _is_closed(self, connection: Any) -> bool:
        return connection.closed

    def _drop(self, connection: Any) -> None:
        connection.close()

    async def _transacted(self, operation: Operation) -> Any:
        """Perform it; again where nothing was done and nobody is to learn of that."""
        while True:
            try:
                return await self._transact(operation)
            except self._library.Error as error:
                number = number_of(error)
                if number is None:
                    raise
                problem = _CLASSES.get(number, f"sql-{number}")
                if self._commit_is_sent and number not in _CLASSES:
                    raise Unclear(problem) from error
                self._commit_is_sent = False
                if number == _NOT_READY:
                    # Another node may be; the transaction ends with the connection.
                    await self.close()
                    raise Refused(problem) from error
                await asked(self._connection, "ROLLBACK")
                is_told = self._manner.workload in OF_KEYS
                if is_told or number not in (_DEADLOCK, _RECORD_CHANGED):
                    raise Refused(problem) from error

    async def _transact(self, operation: Operation) -> Any:
        await asked(self._connection, "START TRANSACTION")
        value = await self._statements.perform(self._connection, operation)
        self._commit_is_sent = True
        await asked(self._connection, "COMMIT")
        return value
