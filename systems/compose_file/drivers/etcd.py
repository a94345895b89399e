"""etcd by its JSON gateway: ranges, puts and transactions of version 3.

Reads are linearizable, as etcd's own clients have them. Source: etcd's ``rpc.proto`` and its page
on the gRPC gateway.
"""

import asyncio
import base64
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.operations import Operation
from splitbrain.systems.compose_file.drivers.driver import AskingDriver
from splitbrain.systems.compose_file.drivers.http_exchange import exchange
from splitbrain.systems.servers import Refused, Unclear

#: Texts of refusals that come before a request is proposed.
_REFUSALS: Final[Mapping[str, str]] = {
    "etcdserver: too many requests": "too-many-requests",
    "etcdserver: mvcc: database space exceeded": "no-space",
    "etcdserver: user name is empty": "not-allowed",
    "etcdserver: permission denied": "not-allowed",
}


class EtcdDriver(AskingDriver):
    """Registers in etcd; values are JSON."""

    name = "etcd"

    async def ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, operation: Operation, /
    ) -> Any:
        """Perform one operation; see ``ServerSystem.ask``."""
        call, request = _request(operation)
        answer = await exchange(
            reader, writer, "POST", f"/v3/kv/{call}", msgspec.json.encode(request)
        )
        try:
            content = msgspec.json.decode(answer.body, type=dict[str, Any])
            if answer.status != 200:
                problem = str(content.get("error") or content.get("message"))
                if problem in _REFUSALS:
                    raise Refused(_REFUSALS[problem])
                raise Unclear(f"http-{answer.status}")
            return _value(operation, content)
        except (*UNREADABLE, KeyError, ValueError) as error:
            raise Unclear("unexpected-answer") from error


def _request(operation: Operation) -> tuple[str, dict[str, Any]]:
    key = _in_base_64((operation.key or "").encode())
    match operation.f:
        case "read":
            return "range", {"key": key}
        case "write":
            return "put", {"key": key, "value": _encoded(operation.value)}
        case "cas":
            expected, new = map(_encoded, operation.value)
            is_so = {"key": key, "target": "VALUE", "result": "EQUAL", "value": expected}
            put = {"request_put": {"key": key, "value": new}}
            return "txn", {"compare": [is_so], "success": [put]}
        case other:
            raise Refused(f"no-{other}")


def _value(operation: Operation, content: dict[str, Any]) -> Any:
    if "header" not in content:
        raise KeyError
    match operation.f:
        case "read":
            found: list[dict[str, str]] = content.get("kvs") or []
            return msgspec.json.decode(base64.b64decode(found[0]["value"])) if found else None
        case "cas":
            return [*operation.value, bool(content.get("succeeded"))]
        case _:
            return operation.value


def _encoded(value: Any) -> str:
    return _in_base_64(msgspec.json.encode(value))


def _in_base_64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
