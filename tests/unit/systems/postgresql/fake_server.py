"""Connections as the library makes them, to a server in memory that fails where a test says so."""

import asyncio
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Final

import asyncpg
import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Address
from splitbrain.systems.postgresql import client as client_module
from splitbrain.systems.postgresql.client import Manner, PostgresClient

NODES: Final = {NodeName(f"n{number}"): Address(f"n{number}", 5432) for number in (1, 2, 3)}
#: Table of each statement, by a word in it.
_TABLES: Final = ("lists", "registers", "cells", "elements", "members")


class Server:
    """Rows of all tables; ``fails`` maps the first word of a statement to what becomes of it."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[Any, Any]] = {table: {} for table in _TABLES}
        self.statements: list[str] = []
        #: Told to the client before it is answered.
        self.warnings: list[str] = []
        self.fails: dict[str, list[Exception | None]] = {}
        self.hangs_at: str | None = None
        #: Statements that the library cancelled, and of which the server learns, by their own time.
        self.cancelled: list[str] = []
        self.standbys: set[str] = set()
        self.down: set[str] = set()
        self._connections: list[Connection] = []

    def open_connections(self) -> int:
        return sum(not connection.is_terminated for connection in self._connections)

    async def connect(self, there: Address, login: Mapping[str, str], timeout_s: float) -> Any:
        if there.host in self.down:
            raise ConnectionRefusedError
        connection = Connection(self, there.host)
        self._connections.append(connection)
        return connection


class Connection:
    """One connection; its transaction's rows are its own until it commits."""

    def __init__(self, server: Server, host: str) -> None:
        self._server, self._host = server, host
        self._listener: Callable[[Any, Any], None] | None = None
        self._rows = server.rows
        self.is_terminated = False

    def get_settings(self) -> Any:
        return SimpleNamespace(
            in_hot_standby="on" if self._host in self._server.standbys else "off"
        )

    def add_log_listener(self, listener: Callable[[Any, Any], None]) -> None:
        self._listener = listener

    def is_closed(self) -> bool:
        return self.is_terminated

    def terminate(self) -> None:
        self.is_terminated = True

    async def execute(self, statement: str, *values: Any, **options: float) -> str:
        word, *_ = statement.split()
        self._server.statements.append(statement)
        if word == self._server.hangs_at:
            await self._hang(statement, options.get("timeout"))
        if (failures := self._server.fails.get(word)) and (failure := failures.pop(0)):
            raise failure
        if word == "BEGIN":
            self._rows = {table: dict(rows) for table, rows in self._server.rows.items()}
        elif word == "COMMIT":
            self._server.rows = self._rows
            for severity in self._server.warnings:
                assert self._listener is not None
                self._listener(self, SimpleNamespace(severity=severity))
        elif word in ("UPDATE", "INSERT"):
            return self._change(statement, *values)
        return word

    async def _hang(self, statement: str, timeout_s: float | None) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.Event().wait()
        except TimeoutError:
            self._server.cancelled.append(statement)
            raise

    def _change(self, statement: str, key: str, value: Any) -> str:
        table = next(table for table in _TABLES if table in statement)
        rows = self._rows[table]
        if statement.startswith("UPDATE") and key not in rows:
            return "UPDATE 0"
        if table in ("elements", "members"):
            rows[key, value] = value
        elif table == "lists":
            rows[key] = [*rows.get(key, []), value]
        else:
            rows[key] = value
        return "UPDATE 1"

    async def fetchval(self, statement: str, key: str, *more: Any) -> Any:
        if statement.startswith("DELETE"):
            return self._rows["members"].pop((key, *more), None)
        return self._rows[next(table for table in _TABLES if table in statement)].get(key)

    async def fetch(self, statement: str, key: Any) -> list[dict[str, Any]]:
        if "elements" in statement:
            mine = sorted(element for (of, element) in self._rows["elements"] if of == key)
            return [{"element": element} for element in mine]
        if "members" in statement:
            return [
                {"id": row} for row in sorted(r for of, r in self._rows["members"] if of == key)
            ]
        cells = self._rows["cells"]
        return [{"key": cell, "value": cells[cell]} for cell in key if cell in cells]


def error(name: str, severity: str = "ERROR") -> Exception:
    """An error of the server, as the library raises it."""
    found: Any = getattr(asyncpg.exceptions, name)("told by the server")
    found.severity = severity
    return found


def client_of(
    server: Server, monkeypatch: pytest.MonkeyPatch, *nodes: str, **manner: Any
) -> PostgresClient:
    """A client of these nodes, by default of n1 alone."""
    monkeypatch.setattr(client_module, "connected", server.connect)
    usual: dict[str, Any] = {
        "workload": "list-append",
        "isolation": "serializable",
        "reads_anywhere": False,
        "inserts_first": False,
    }
    there = {node: NODES[node] for node in map(NodeName, nodes or ("n1",))}
    return PostgresClient(there, Manner(**{**usual, **manner}))
