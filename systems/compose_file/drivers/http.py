"""Registers behind HTTP: ``GET`` and ``PUT`` of a path that has the key in it, values as JSON.

A read is answered by 2xx with the value, or by 404 where there is none; a write by any 2xx. Other
answers of 4xx say that nothing was done; whatever else comes may have been done or not.
"""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UNREADABLE, UsageError
from splitbrain.contracts.operations import Operation
from splitbrain.systems.compose_file.drivers.driver import AskingDriver
from splitbrain.systems.http_exchange import Answer, exchange
from splitbrain.systems.servers import Refused, Unclear

_KEY: Final = "{key}"
_PATH: Final = "path"
#: A proxy gave up waiting for the request, or for what it had passed on.
_OPEN: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, 499})


class HttpDriver(AskingDriver):
    """Registers that are read by GET and written by PUT."""

    name = "http"
    has_compare_and_set = False
    settings: Mapping[str, str] = {_PATH: "where a register is, /{key} by default"}

    def __init__(
        self, options: Mapping[str, str], environment: Mapping[str, str], workload: str
    ) -> None:
        super().__init__(options, environment, workload)
        self._path = options.get(_PATH, f"/{_KEY}")
        if not self._path.startswith("/") or _KEY not in self._path or " " in self._path:
            raise UsageError(
                f"--setting path cannot be {self._path!r}", f"Write it as in /values/{_KEY}"
            )

    async def ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, operation: Operation, /
    ) -> Any:
        """Perform one operation; see ``ServerSystem.ask``."""
        path = self._path.replace(_KEY, operation.key or "")
        match operation.f:
            case "read":
                return _read(await exchange(reader, writer, "GET", path))
            case "write":
                body = msgspec.json.encode(operation.value)
                _check(await exchange(reader, writer, "PUT", path, body))
                return operation.value
            case other:
                raise Refused(f"no-{other}")


def _read(answer: Answer) -> Any:
    if answer.status == HTTPStatus.NOT_FOUND:
        return None
    _check(answer)
    try:
        return msgspec.json.decode(answer.body)
    except UNREADABLE as error:
        raise Unclear("unexpected-answer") from error


def _check(answer: Answer) -> None:
    kind = answer.status // 100
    if kind == 4 and answer.status not in _OPEN:
        raise Refused(f"http-{answer.status}")
    if kind != 2:
        raise Unclear(f"http-{answer.status}")
