"""Operations as statements, within a transaction that is open.

Keys are rows: of ``lists`` where they are appended to, of ``registers`` where transactions write
them, of ``cells`` for all other workloads, whose meaning is ``systems.rows``; elements of a set
are rows of ``elements``, and groups of rows are ids of ``members``. Must never begin or end a
transaction.
"""

from typing import Any, Final

import msgspec

from splitbrain.contracts.operations import Operation
from splitbrain.systems.mariadb.library import asked
from splitbrain.systems.rows import CELL_RULES, LIST_APPEND, OF_KEYS, SET, only_looks

_KEY: Final = "id VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
#: Made before the load. Lists are texts: numbers with a comma after each.
TABLES: Final = (
    f"CREATE TABLE IF NOT EXISTS lists ({_KEY} PRIMARY KEY, elements LONGTEXT NOT NULL)",
    f"CREATE TABLE IF NOT EXISTS registers ({_KEY} PRIMARY KEY, value BIGINT NOT NULL)",
    f"CREATE TABLE IF NOT EXISTS cells ({_KEY} PRIMARY KEY, value LONGTEXT NOT NULL)",
    f"CREATE TABLE IF NOT EXISTS elements ({_KEY}, element BIGINT, PRIMARY KEY (id, element))",
    f"CREATE TABLE IF NOT EXISTS members (row_id BIGINT PRIMARY KEY, {_KEY} NOT NULL, KEY (id))",
)

_READ_LIST: Final = "SELECT elements FROM lists WHERE id = %s"
_READ_REGISTER: Final = "SELECT value FROM registers WHERE id = %s"
_READ_CELLS: Final = "SELECT id, value FROM cells WHERE id IN %s"
_READ_ELEMENTS: Final = "SELECT element FROM elements WHERE id = %s ORDER BY element"
_ADD_ELEMENT: Final = "INSERT INTO elements VALUES (%s, %s)"
_RANGE: Final = "SELECT row_id FROM members WHERE id = %s ORDER BY row_id"
_INSERT: Final = "INSERT INTO members (id, row_id) VALUES (%s, %s)"
_DELETE: Final = "DELETE FROM members WHERE id = %s AND row_id = %s RETURNING row_id"
_APPEND: Final = (
    "INSERT INTO lists VALUES (%s, CONCAT(%s, ','))"
    " ON DUPLICATE KEY UPDATE elements = CONCAT(elements, VALUES(elements))"
)
_WRITE: Final = (
    "INSERT INTO registers VALUES (%s, %s) ON DUPLICATE KEY UPDATE value = VALUES(value)"
)
_PUT: Final = "INSERT INTO cells VALUES (%s, %s) ON DUPLICATE KEY UPDATE value = VALUES(value)"


class Statements:
    """Operations of one workload."""

    def __init__(self, workload: str | None) -> None:
        self._workload = workload

    async def perform(self, connection: Any, operation: Operation) -> Any:
        """Perform an operation, on an open transaction; return its answer.

        Raises what the library raises, and what reading an answer does (``UNREADABLE``).
        """
        key = operation.key or ""
        if self._workload in OF_KEYS:
            return [await self._part(connection, *part) for part in operation.value]
        if operation.f == "add":
            await asked(connection, _ADD_ELEMENT, key, operation.value)
            return operation.value
        if operation.f == "read" and self._workload == SET:
            return [element for (element,) in await asked(connection, _READ_ELEMENTS, key)]
        return await self._step(connection, operation)

    async def _part(self, connection: Any, kind: str, key: str, value: Any) -> list[Any]:
        match kind:
            case "append":
                await asked(connection, _APPEND, key, value)
            case "w":
                await asked(connection, _WRITE, key, value)
            case "range":
                value = [row for (row,) in await asked(connection, _RANGE, key)]
            case "insert":
                await asked(connection, _INSERT, key, value)
            case "delete":
                rows = await asked(connection, _DELETE, key, value)
                value = next((row for (row,) in rows), None)
            case _ if self._workload == LIST_APPEND:
                rows = await asked(connection, _READ_LIST, key)
                value = [int(each) for (text,) in rows for each in text.split(",")[:-1]]
            case _:
                rows = await asked(connection, _READ_REGISTER, key)
                value = next((number for (number,) in rows), None)
        return [kind, key, value]

    async def _step(self, connection: Any, operation: Operation) -> Any:
        rule = CELL_RULES[operation.f]
        cells = list(rule.cells(operation))
        # A read that locks meets the newest rows, and holds them until the write.
        reading = _READ_CELLS if only_looks(operation) else f"{_READ_CELLS} FOR UPDATE"
        rows = await asked(connection, reading, cells)
        found = {cell: msgspec.json.decode(value) for cell, value in rows}
        step = rule.step(operation, {cell: found.get(cell) for cell in cells})
        for cell, value in step.changes.items():
            await asked(connection, _PUT, cell, msgspec.json.encode(value).decode())
        return step.answer
