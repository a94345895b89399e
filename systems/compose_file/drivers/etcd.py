"""etcd by its JSON gateway: ranges, puts and transactions of version 3.

Reads are linearizable, as etcd's own clients have them.
"""

import asyncio
from typing import Any

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.operations import Operation
from splitbrain.systems.compose_file.drivers.driver import AskingDriver
from splitbrain.systems.etcd.gateway import call, key, value, value_of
from splitbrain.systems.servers import Refused, Unclear


class EtcdDriver(AskingDriver):
    """Registers in etcd; values are JSON."""

    name = "etcd"

    async def ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, operation: Operation, /
    ) -> Any:
        """Perform one operation; see ``ServerSystem.ask``."""
        answer = await call(reader, writer, *_request(operation))
        try:
            return _value(operation, answer)
        except (*UNREADABLE, KeyError, ValueError) as error:
            raise Unclear("unexpected-answer") from error


def _request(operation: Operation) -> tuple[str, dict[str, Any]]:
    there = key(operation.key or "")
    match operation.f:
        case "read":
            return "kv/range", {"key": there}
        case "write":
            return "kv/put", {"key": there, "value": value(operation.value)}
        case "cas":
            expected, new = map(value, operation.value)
            is_so = {"key": there, "target": "VALUE", "result": "EQUAL", "value": expected}
            put = {"request_put": {"key": there, "value": new}}
            return "kv/txn", {"compare": [is_so], "success": [put]}
        case other:
            raise Refused(f"no-{other}")


def _value(operation: Operation, answer: dict[str, Any]) -> Any:
    match operation.f:
        case "read":
            found: list[dict[str, str]] = answer.get("kvs") or []
            return value_of(found[0]) if found else None
        case "cas":
            return [*operation.value, bool(answer.get("succeeded"))]
        case _:
            return operation.value
