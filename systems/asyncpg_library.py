"""The client library of PostgreSQL, an extra: asyncpg, for whoever speaks to such servers.

asyncpg sends nothing twice and connects nowhere by itself
([decision 39](docs/decisions/0039-client-of-postgresql.md)).
"""

from collections.abc import Mapping
from typing import Any

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.runtime import Address


def library(needed_by: str) -> Any:
    """Return asyncpg.

    Raises:
        UsageError: it is not installed; ``needed_by`` begins the sentence.
    """
    try:
        import asyncpg  # pyright: ignore[reportMissingTypeStubs]
    except ImportError as error:
        raise UsageError(
            f"{needed_by} needs the package asyncpg, which is not installed",
            "pip install 'splitbrain[postgres]' brings it",
        ) from error
    return asyncpg


async def connected(there: Address, login: Mapping[str, str], timeout_s: float) -> Any:
    """Return an open connection; raises what the library raises."""
    return await library("a client of PostgreSQL").connect(
        host=there.host, port=there.port, timeout=timeout_s, ssl=False, **login
    )
