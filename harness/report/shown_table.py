"""A table of the page, and how figures become text in it. Pure."""

from typing import Any, Final

import msgspec

from splitbrain.harness.console.plain_text import value_text

#: Rows of one table; the rest is counted.
ROWS_MAX: Final = 100


class AnalysisTable(msgspec.Struct, frozen=True):
    """One table: rows of text under a header."""

    title: str
    #: One sentence that says what the figures mean.
    note: str
    header: list[str]
    rows: list[list[str]]
    #: Columns of text at the left; the others are figures.
    text_columns: int = 1
    #: Rows left out.
    more: int = 0


def text(value: Any) -> str:
    """A value, a dash where there is none."""
    return "-" if value is None else value_text(value)


def share(value: Any) -> str:
    """A share in percent."""
    return "-" if value is None else f"{value:.0%}"


def milliseconds(value: Any) -> str:
    """A time in milliseconds."""
    return "-" if value is None else f"{value:,.1f} ms"
