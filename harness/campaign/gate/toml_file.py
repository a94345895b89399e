"""A TOML file written by hand, read so that errors in it are refused with their line.

The standard parser gives no lines. ``TomlLines`` finds those that a message needs: headers of
tables, keys, and the texts of an array; None for any other.
"""

import hashlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.nearest import or_nearest
from splitbrain.history.json_problems import in_words

_HEADER = re.compile(r"^\s*\[\[?\s*(?P<name>[^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*(?P<name>[A-Za-z0-9_.\"'-]+)\s*=")


class TomlFile:
    """Base of the readers of one file.

    ``called`` is the file's kind in sentences, ``next_step`` the advice on errors.

    Raises:
        UsageError: it cannot be read, or is no TOML.
    """

    def __init__(self, path: Path, called: str, next_step: str) -> None:
        self._path = path
        self._called = called
        try:
            content = path.read_bytes()
            text = content.decode("utf-8")
            self.data: dict[str, Any] = tomllib.loads(text)
        except OSError as error:
            problem = f"the {called} {path} cannot be read: {error.strerror}"
            raise UsageError(problem, "Name a file that exists") from error
        except (ValueError, RecursionError) as error:
            problem = f"the {called} {path} is no TOML: {in_words(error)}"
            raise UsageError(problem, next_step) from error
        self.digest = hashlib.sha256(content).hexdigest()
        self._lines = TomlLines(text)

    def _refuse_other_schema(self, schema: int) -> None:
        actual = self.data.get("schema")
        if actual is True or actual != schema:
            how = "says no schema" if actual is None else f"has schema {actual!r}"
            problem = f"it {how}, and this version reads {schema}"
            line = self._lines.key("", "schema")
            self._refuse(problem, f"Begin it with schema = {schema}", line)

    def _refuse_unknown_keys(
        self,
        content: dict[str, Any],
        allowed: tuple[str, ...],
        table: str = "",
        occurrence: int = 0,
    ) -> None:
        for key in content:
            if key not in allowed:
                line = self._lines.key(table, key, occurrence)
                line = line or self._lines.header(f"{table}.{key}" if table else key)
                self._refuse(f"there is no key {key!r}", or_nearest(key, allowed, "keys"), line)

    def _refuse(self, problem: str, next_step: str, line: int | None = None) -> NoReturn:
        where = "" if line is None else f", line {line}"
        raise UsageError(f"the {self._called} {self._path}{where}: {problem}", next_step)


class TomlLines:
    """The lines of one TOML text."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()

    def header(self, name: str, occurrence: int = 0) -> int | None:
        """Return the line, from 1, of ``[name]``, or of a later ``[[name]]``."""
        for number, line in enumerate(self._lines, start=1):
            match = _HEADER.match(line)
            if match is not None and _plain(match["name"]) == name:
                if occurrence == 0:
                    return number
                occurrence -= 1
        return None

    def key(self, table: str, key: str, occurrence: int = 0) -> int | None:
        """Return the line of a table's key; of the table ``""`` at the beginning."""
        for number, line in self._lines_of(table, occurrence):
            match = _KEY.match(line)
            if match is not None and _plain(match["name"]) == key:
                return number
        return None

    def text(self, table: str, text: str) -> int | None:
        """Return the line of a table on which a quoted text stands."""
        for number, line in self._lines_of(table):
            if f'"{text}"' in line or f"'{text}'" in line:
                return number
        return None

    def _lines_of(self, table: str, occurrence: int = 0) -> Iterator[tuple[int, str]]:
        start = self.header(table, occurrence) if table else 0
        if start is not None:
            for number, line in enumerate(self._lines[start:], start=start + 1):
                if _HEADER.match(line):
                    return
                yield number, line


def _plain(name: str) -> str:
    return "".join(name.split()).replace('"', "").replace("'", "")
