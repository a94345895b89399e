"""Says on which line of a TOML file something stands; the standard parser does not tell.

It reads just as much as a message needs: headers of tables, keys, and the texts of an array. What
it does not find it says nothing about.
"""

import re

_HEADER = re.compile(r"^\s*\[\[?\s*(?P<name>[^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*(?P<name>[A-Za-z0-9_.\"'-]+)\s*=")


class TomlLines:
    """The lines of one TOML text."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()

    def header(self, name: str, occurrence: int = 0) -> int | None:
        """Number, from 1, of the line ``[name]`` or of the so-manieth ``[[name]]``."""
        for number, line in enumerate(self._lines, start=1):
            match = _HEADER.match(line)
            if match is not None and _plain(match["name"]) == name:
                if occurrence == 0:
                    return number
                occurrence -= 1
        return None

    def key(self, table: str, key: str, occurrence: int = 0) -> int | None:
        """The line on which a key of a table stands; of the table ``""`` at the beginning."""
        start = self._begin(table, occurrence)
        if start is None:
            return None
        for number, line in enumerate(self._lines[start:], start=start + 1):
            if _HEADER.match(line):
                break
            match = _KEY.match(line)
            if match is not None and _plain(match["name"]) == key:
                return number
        return None

    def text(self, table: str, text: str) -> int | None:
        """The line of a table on which a quoted text stands."""
        start = self._begin(table, 0)
        if start is None:
            return None
        for number, line in enumerate(self._lines[start:], start=start + 1):
            if _HEADER.match(line):
                break
            if f'"{text}"' in line or f"'{text}'" in line:
                return number
        return None

    def _begin(self, table: str, occurrence: int) -> int | None:
        return 0 if not table else self.header(table, occurrence)


def _plain(name: str) -> str:
    return "".join(name.split()).replace('"', "").replace("'", "")
