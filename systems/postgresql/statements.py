"""Operations as statements, within a transaction that is open.

Keys are rows: of ``lists`` where they are appended to, of ``registers`` where transactions write
them, of ``cells`` for all other workloads, whose meaning is ``systems.cells``; elements of a set
are rows of ``elements``, and groups of rows are categories of ``members``. Must never begin or end
a transaction.
"""

import asyncio
from random import random
from typing import Any, Final

import msgspec

from splitbrain.contracts.operations import Operation
from splitbrain.systems.rows import CELL_RULES, LIST_APPEND, OF_KEYS, SET

_BETWEEN: Final = (
    "FROM generate_series(0, 9) lane, generate_series(1, 500) n ON CONFLICT DO NOTHING"
)
#: Made before the load.
TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS lists (key text PRIMARY KEY, elements bigint[] NOT NULL)",
    "CREATE TABLE IF NOT EXISTS registers (key text PRIMARY KEY, value bigint NOT NULL)",
    "CREATE TABLE IF NOT EXISTS cells (key text PRIMARY KEY, value text NOT NULL)",
    "CREATE TABLE IF NOT EXISTS elements (key text, element bigint, PRIMARY KEY (key, element))",
    "CREATE TABLE IF NOT EXISTS members (id bigint PRIMARY KEY, category text NOT NULL)",
    "CREATE INDEX IF NOT EXISTS members_of ON members (category)",
    # Rows that nobody asks for, between the keys of lanes: whoever reads a key that is not there
    # locks a page of the index, and all keys would share one.
    f"INSERT INTO lists SELECT lane || '~' || n, '{{}}' {_BETWEEN}",
    f"INSERT INTO registers SELECT lane || '~' || n, 0 {_BETWEEN}",
)
#: Read by the transaction that stays open.
LOOK_OF_LONG: Final = "SELECT count(*) FROM cells"

_READ_LIST: Final = "SELECT elements FROM lists WHERE key = $1"
_READ_REGISTER: Final = "SELECT value FROM registers WHERE key = $1"
_READ_CELLS: Final = "SELECT key, value FROM cells WHERE key = ANY($1)"
_READ_ELEMENTS: Final = "SELECT element FROM elements WHERE key = $1 ORDER BY element"
_ADD_ELEMENT: Final = "INSERT INTO elements VALUES ($1, $2)"
_RANGE: Final = "SELECT id FROM members WHERE category = $1 ORDER BY id"
_INSERT: Final = "INSERT INTO members (category, id) VALUES ($1, $2)"
_DELETE: Final = "DELETE FROM members WHERE category = $1 AND id = $2 RETURNING id"


class Change(msgspec.Struct, frozen=True):
    """A change of a row that may not be there yet, in two manners; $1 is its key."""

    update: str
    insert: str
    #: Of a row that is there although it was to be inserted.
    conflict: str


_APPEND: Final = Change(
    "UPDATE lists SET elements = elements || $2::bigint WHERE key = $1",
    "INSERT INTO lists VALUES ($1, ARRAY[$2::bigint])",
    "ON CONFLICT (key) DO UPDATE SET elements = lists.elements || EXCLUDED.elements",
)
_WRITE: Final = Change(
    "UPDATE registers SET value = $2 WHERE key = $1",
    "INSERT INTO registers VALUES ($1, $2)",
    "ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value",
)
_PUT: Final = Change(
    "UPDATE cells SET value = $2 WHERE key = $1",
    "INSERT INTO cells VALUES ($1, $2)",
    "ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value",
)


class Statements:
    """Operations of one workload; ``inserts_first``: a row that may be missing is inserted first.

    Else it is updated first, and inserted where no row was met.
    """

    def __init__(
        self, workload: str | None, *, inserts_first: bool, think_time_s: float = 0.0
    ) -> None:
        """``think_time_s``: longest wait before each part of a transaction, in seconds."""
        self._workload = workload
        self._inserts_first = inserts_first
        self._think_time_s = think_time_s

    async def perform(self, connection: Any, operation: Operation) -> Any:
        """Perform an operation, on an open transaction; return its answer.

        Raises what the library raises, and what reading an answer does (``UNREADABLE``).
        """
        key = operation.key or ""
        if self._workload in OF_KEYS:
            return [await self._part(connection, *part) for part in operation.value]
        if operation.f == "add":
            await connection.execute(_ADD_ELEMENT, key, operation.value)
            return operation.value
        if operation.f == "read" and self._workload == SET:
            return [row["element"] for row in await connection.fetch(_READ_ELEMENTS, key)]
        return await self._step(connection, operation)

    async def _part(self, connection: Any, kind: str, key: str, value: Any) -> list[Any]:
        if self._think_time_s:
            # Of one length for all, transactions that begin together would end together.
            await asyncio.sleep(random() * self._think_time_s)
        match kind:
            case "append":
                await self._change(connection, _APPEND, key, value)
            case "w":
                await self._change(connection, _WRITE, key, value)
            case "range":
                value = [row["id"] for row in await connection.fetch(_RANGE, key)]
            case "insert":
                await connection.execute(_INSERT, key, value)
            case "delete":
                value = await connection.fetchval(_DELETE, key, value)
            case _ if self._workload == LIST_APPEND:
                value = await connection.fetchval(_READ_LIST, key) or []
            case _:
                value = await connection.fetchval(_READ_REGISTER, key)
        return [kind, key, value]

    async def _step(self, connection: Any, operation: Operation) -> Any:
        rule = CELL_RULES[operation.f]
        cells = list(rule.cells(operation))
        rows = await connection.fetch(_READ_CELLS, cells)
        found = {row["key"]: msgspec.json.decode(row["value"]) for row in rows}
        step = rule.step(operation, {cell: found.get(cell) for cell in cells})
        for cell, value in step.changes.items():
            text = msgspec.json.encode(value).decode()
            await self._change(connection, _PUT, cell, text)
        return step.answer

    async def _change(self, connection: Any, change: Change, key: str, value: Any) -> None:
        if self._inserts_first:
            await connection.execute(f"{change.insert} {change.conflict}", key, value)
        elif await connection.execute(change.update, key, value) == "UPDATE 0":
            await connection.execute(change.insert, key, value)
