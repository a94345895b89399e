"""One call of etcd's JSON gateway over an open connection, and how it writes keys and values.

Sources: etcd's ``rpc.proto`` and its page on the gRPC gateway. Must never call an answer a refusal
that may come after a request was proposed.
"""

import asyncio
import base64
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.systems.http_exchange import exchange
from splitbrain.systems.servers import Refused, Unclear

#: Texts of refusals that come before a request is proposed.
REFUSALS: Final[Mapping[str, str]] = {
    "etcdserver: too many requests": "too-many-requests",
    "etcdserver: mvcc: database space exceeded": "no-space",
    "etcdserver: user name is empty": "not-allowed",
    "etcdserver: permission denied": "not-allowed",
}


async def call(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str, request: dict[str, Any]
) -> dict[str, Any]:
    """Make a call, ``kv/range``, ``kv/put``, ``kv/txn`` or ``lease/grant``; return its answer.

    Raises:
        Refused: the server did not do it.
        Unclear: it may have done it.
        OSError, EOFError: the connection is of no more use.
    """
    body = msgspec.json.encode(request)
    answer = await exchange(reader, writer, "POST", f"/v3/{name}", body)
    try:
        content = msgspec.json.decode(answer.body, type=dict[str, Any])
    except UNREADABLE as error:
        raise Unclear("unexpected-answer") from error
    if answer.status != 200:
        problem = str(content.get("error") or content.get("message"))
        if problem in REFUSALS:
            raise Refused(REFUSALS[problem])
        raise Unclear(f"http-{answer.status}")
    if "header" not in content:
        raise Unclear("unexpected-answer")
    return content


def key(text: str) -> str:
    """Return a key, or an end of a range of keys, as requests have it."""
    return base64.b64encode(text.encode()).decode()


def key_text(encoded: str) -> str:
    """Return the key of an answer."""
    return base64.b64decode(encoded).decode()


def below(parent: str) -> dict[str, str]:
    """Return the part of a request that names all keys ``parent/...``."""
    return {"key": key(f"{parent}/"), "range_end": key(f"{parent}0")}


def value(content: Any) -> str:
    """Return a value as requests have it; it is kept as JSON."""
    return base64.b64encode(msgspec.json.encode(content)).decode()


def value_of(found: Mapping[str, str]) -> Any:
    """Return the value of a key of an answer."""
    return msgspec.json.decode(base64.b64decode(found["value"]))
