"""PostgreSQL: a register is a row of a table, each operation a statement of its own.

An error of the server is a refusal only where its class says that the statement was rolled back;
one that ends the connection leaves a commit open. Source: appendix A of PostgreSQL's manual.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.runtime import Address
from splitbrain.systems.asyncpg_library import connected, library
from splitbrain.systems.compose_file.drivers.driver import Driver

_TABLE: Final = "CREATE TABLE IF NOT EXISTS splitbrain (key text PRIMARY KEY, value text NOT NULL)"
_READ: Final = "SELECT value FROM splitbrain WHERE key = $1"
_WRITE: Final = (
    "INSERT INTO splitbrain VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value"
)
_CAS: Final = "UPDATE splitbrain SET value = $3 WHERE key = $1 AND value = $2"
#: Classes and codes of errors after which nothing of the statement is left.
_ROLLED_BACK: Final = ("22", "23", "25", "28", "3D", "42", "53", "54", "55", "40001", "40P01")
_CONNECT_TIMEOUT_S: Final = 5.0
_FIRST_ROW_OF_STANDBY: Final = "25006"


class PostgresDriver(Driver):
    """Registers in a table ``splitbrain``, which it makes; values are JSON."""

    name = "postgres"
    settings: Mapping[str, str] = {
        "user": "by default POSTGRES_USER of the service's environment, else postgres",
        "password": "by default POSTGRES_PASSWORD of the service's environment",
        "database": "by default POSTGRES_DB of the service's environment, else the user's name",
    }

    def __init__(
        self, options: Mapping[str, str], environment: Mapping[str, str], workload: str
    ) -> None:
        super().__init__(options, environment, workload)
        _library()
        user = options.get("user") or environment.get("POSTGRES_USER") or "postgres"
        self._login = {
            "user": user,
            "password": options.get("password") or environment.get("POSTGRES_PASSWORD") or "",
            "database": options.get("database") or environment.get("POSTGRES_DB") or user,
        }

    async def prepare(self, there: Address) -> None:
        """Make the table; a standby gets it from its primary."""
        connection = await connected(there, self._login, _CONNECT_TIMEOUT_S)
        try:
            await connection.execute(_TABLE)
        except _library().PostgresError as error:
            if error.sqlstate != _FIRST_ROW_OF_STANDBY:
                raise
        finally:
            connection.terminate()

    def open_client(self, node: NodeName, there: Address) -> "PostgresClient":
        """Return a fresh client, which connects at its first operation."""
        return PostgresClient(self._login, node, there)


class PostgresClient:
    """One connection to one server."""

    def __init__(self, login: Mapping[str, str], node: NodeName, there: Address) -> None:
        self._login, self._node, self._there = login, node, there
        self._connection: Any = None

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        """Perform one operation; see ``contracts.operations.Client``."""
        library = _library()
        is_sent = False
        try:
            async with asyncio.timeout(timeout_s):
                if self._connection is None or self._connection.is_closed():
                    self._connection = await connected(self._there, self._login, timeout_s)
                is_sent = True
                value = await _performed(self._connection, operation)
        except TimeoutError:
            problem = "timeout"
        # The library tells of a lost connection by errors of its own, or by one of the server's.
        except (
            OSError,
            library.InterfaceError,
            library.InternalClientError,
            library.PostgresConnectionError,
        ):
            problem = "connection-broken" if is_sent else "no-connection"
        except library.PostgresError as error:
            problem = f"sql-{error.sqlstate}".lower()
            if not is_sent or str(error.sqlstate).startswith(_ROLLED_BACK):
                return Completion("fail", error=problem, node=self._node)
        except UNREADABLE:
            problem = "unexpected-answer"
        else:
            return Completion("ok", value, node=self._node)
        await self.close()
        return Completion("info" if is_sent else "fail", error=problem)

    async def close(self) -> None:
        """Drop the connection without waiting for outstanding answers."""
        if self._connection is not None:
            self._connection.terminate()
        self._connection = None


async def _performed(connection: Any, operation: Operation) -> Any:
    key, value = operation.key or "", operation.value
    match operation.f:
        case "read":
            found = await connection.fetchval(_READ, key)
            return None if found is None else msgspec.json.decode(found)
        case "write":
            await connection.execute(_WRITE, key, _encoded(value))
            return value
        case "cas":
            expected, new = value
            told = await connection.execute(_CAS, key, _encoded(expected), _encoded(new))
            return [expected, new, told == "UPDATE 1"]
        case other:
            raise AssertionError(f"no workload of this driver asks for {other}")


def _encoded(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _library() -> Any:
    return library("the driver postgres")
