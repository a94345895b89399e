"""The client library of MariaDB, an extra: aiomysql, for whoever speaks to such servers.

aiomysql sends nothing twice and connects nowhere by itself
([decision 41](docs/decisions/0041-client-of-mariadb.md)).
"""

from collections.abc import Mapping
from typing import Any, Final

from splitbrain.contracts.runtime import Address
from splitbrain.systems import extras

#: Made by the first server when it makes its files.
LOGIN: Final[Mapping[str, str]] = {"user": "splitbrain", "password": "", "db": "splitbrain"}
#: Numbers of errors that the library makes itself: the connection is of no more use.
_OF_CLIENTS: Final = range(2000, 3000)


def library(needed_by: str) -> Any:
    """Return aiomysql; raises UsageError where it is not installed."""
    return extras.library(needed_by, "aiomysql", "mariadb")


async def connected(there: Address, timeout_s: float) -> Any:
    """Return an open connection; raises what the library raises."""
    return await library("a client of MariaDB").connect(
        host=there.host, port=there.port, connect_timeout=timeout_s, autocommit=True, **LOGIN
    )


async def asked(connection: Any, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Perform a statement and return its rows; raises what the library raises.

    Values stand for ``%s``; a sequence among them for a list in parentheses.
    """
    cursor = await connection.cursor()
    await cursor.execute(statement, values)
    return list(await cursor.fetchall())


def number_of(error: Exception) -> int | None:
    """Return the number of a server's error; None of one that ends the connection."""
    number = error.args[0] if error.args else None
    if not isinstance(number, int) or number == 0 or number in _OF_CLIENTS:
        return None
    return number
