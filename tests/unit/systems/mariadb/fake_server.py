"""Connections as the library makes them, to a server in memory that fails where a test says so."""

import asyncio
from typing import Any, Final

import pymysql
import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Address
from splitbrain.systems.mariadb import client as client_module
from splitbrain.systems.mariadb.client import Manner, MariadbClient

NODES: Final = {NodeName(f"n{number}"): Address(f"n{number}", 3306) for number in (1, 2, 3)}
_TABLES: Final = ("lists", "registers", "cells", "elements", "members")


class Server:
    """Rows of all tables; ``fails`` maps the first word of a statement to what becomes of it."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[Any, Any]] = {table: {} for table in _TABLES}
        self.statements: list[str] = []
        self.fails: dict[str, list[Exception | None]] = {}
        self.hangs_at: str | None = None
        #: Nodes that are in no primary component, and those that take no connections.
        self.apart: set[str] = set()
        self.down: set[str] = set()
        self._connections: list[Connection] = []

    def open_connections(self) -> int:
        return sum(not connection.closed for connection in self._connections)

    async def connect(self, there: Address, timeout_s: float) -> Any:
        if there.host in self.down:
            raise lost(2003)
        connection = Connection(self, there.host)
        self._connections.append(connection)
        return connection


class Connection:
    """One connection; its transaction's rows are its own until it commits."""

    def __init__(self, server: Server, host: str) -> None:
        self.server, self.host = server, host
        self.rows = server.rows
        self.closed = False

    async def cursor(self) -> "Cursor":
        return Cursor(self)

    def close(self) -> None:
        self.closed = True


class Cursor:
    """One statement and its rows."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._found: list[tuple[Any, ...]] = []

    async def fetchall(self) -> list[tuple[Any, ...]]:
        return self._found

    async def execute(self, statement: str, values: tuple[Any, ...]) -> None:
        connection, server = self._connection, self._connection.server
        word, *_ = statement.split()
        if word == "SHOW":
            self._found = [("wsrep_ready", "OFF" if connection.host in server.apart else "ON")]
            return
        server.statements.append(statement)
        if word == server.hangs_at:
            await asyncio.Event().wait()
        if (failures := server.fails.get(word)) and (failure := failures.pop(0)):
            raise failure
        if word == "START":
            connection.rows = {table: dict(rows) for table, rows in server.rows.items()}
        elif word == "COMMIT":
            server.rows = connection.rows
        elif word == "SELECT":
            self._found = self._read(statement, *values)
        elif word == "INSERT":
            self._change(statement, *values)
        elif word == "DELETE":
            found = connection.rows["members"].pop(values, None)
            self._found = [] if found is None else [(found,)]

    def _change(self, statement: str, key: str, value: Any) -> None:
        table = next(table for table in _TABLES if table in statement)
        rows = self._connection.rows[table]
        if table in ("elements", "members"):
            rows[key, value] = value
        elif table == "lists":
            rows[key] = f"{rows.get(key, '')}{value},"
        else:
            rows[key] = value

    def _read(self, statement: str, key: Any) -> list[tuple[Any, ...]]:
        table = next(table for table in _TABLES if f" {table} " in statement)
        rows = self._connection.rows[table]
        if table in ("elements", "members"):
            return [(element,) for element in sorted(each for of, each in rows if of == key)]
        if table == "cells":
            return [(cell, rows[cell]) for cell in key if cell in rows]
        return [(rows[key],)] if key in rows else []


def refusal(number: int) -> Exception:
    """An error of the server, as the library raises it."""
    return pymysql.err.OperationalError(number, "told by the server")


def lost(number: int = 2013) -> Exception:
    """The library's own word that a connection is gone."""
    return pymysql.err.OperationalError(number, "told by the library")


def client_of(
    server: Server, monkeypatch: pytest.MonkeyPatch, *nodes: str, **manner: Any
) -> MariadbClient:
    """A client of these nodes, by default of n1 alone."""
    monkeypatch.setattr(client_module, "connected", server.connect)
    usual: dict[str, Any] = {"workload": "list-append", "isolation": "repeatable-read"}
    there = {node: NODES[node] for node in map(NodeName, nodes or ("n1",))}
    return MariadbClient(there, Manner(**{**usual, **manner}))
