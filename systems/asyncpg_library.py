"""The client library of PostgreSQL, an extra: asyncpg, for whoever speaks to such servers.

asyncpg sends nothing twice and connects nowhere by itself
([decision 39](docs/decisions/0039-client-of-postgresql.md)).
"""

from collections.abc import Mapping
from typing import Any

from splitbrain.contracts.runtime import Address
from splitbrain.systems import extras


def library(needed_by: str) -> Any:
    """Return asyncpg; raises UsageError where it is not installed."""
    return extras.library(needed_by, "asyncpg", "postgres")


async def connected(there: Address, login: Mapping[str, str], timeout_s: float) -> Any:
    """Return an open connection; raises what the library raises."""
    return await library("a client of PostgreSQL").connect(
        host=there.host, port=there.port, timeout=timeout_s, ssl=False, **login
    )
