"""A table of the page, and figures as text in it. Pure."""

from typing import Any, Final

import msgspec

from splitbrain.harness.console.plain_text import value_text

#: Rows of one table; the rest is counted.
ROWS_MAX: Final = 100


class AnalysisTable(msgspec.Struct, frozen=True):
    """One table: rows of text under a header."""

    title: str
    #: One sentence on the meaning of the figures.
    note: str
    header: list[str]
    rows: list[list[str]]
    #: Columns of text at the left; the others are figures.
    text_columns: int = 1
    #: Rows left out.
    more: int = 0


def text(value: Any) -> str:
    """Return a value, a dash where there is none."""
    return "-" if value is None else value_text(value)


def share(value: Any) -> str:
    """Return a share in percent."""
    return "-" if value is None else f"{value:.0%}"


def milliseconds(value: Any) -> str:
    """Return a time in milliseconds."""
    return "-" if value is None else f"{value:,.1f} ms"
