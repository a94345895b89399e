"""Makes text from a system under test harmless for a terminal and for Markdown.

An escape sequence in a node's name, a value or a log line must never move a cursor, nor a bar or a
tag break a table. (``report.html`` escapes by its template engine instead.)
"""

import json
from typing import Any, cast

_MARKDOWN_SPECIAL = frozenset("\\`*_{}[]<>|#~&")


def printable(text: str) -> str:
    """Return the text with every character that is not printable shown as an escape."""
    return "".join(
        character
        if character.isprintable()
        else character.encode("unicode_escape", "backslashreplace").decode("ascii")
        for character in text
    )


def markdown(text: str) -> str:
    """Printable text that Markdown shows literally, also inside a table's cell."""
    return "".join(
        f"\\{character}" if character in _MARKDOWN_SPECIAL else character
        for character in printable(text)
    )


def value_text(value: Any, length_max: int = 60) -> str:
    """Return a JSON value in short, printable and at most ``length_max`` characters long."""
    if isinstance(value, float):
        text = f"{value:,.3f}".rstrip("0").rstrip(".")
    elif isinstance(value, int) and not isinstance(value, bool):
        text = f"{value:,}"
    elif isinstance(value, str):
        text = value
    elif isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):  # pyright: ignore[reportUnknownVariableType]
        text = ", ".join(cast("list[str]", value))
    else:
        text = json.dumps(value, ensure_ascii=False, default=str)
    text = printable(text)
    return text if len(text) <= length_max else text[: length_max - 1] + "…"
