"""Output of ``splitbrain explain``: one thing in words and a picture, or a list of all."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from splitbrain.contracts.explanation import Explanation
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.console.standard_streams import answer
from splitbrain.harness.report.explanations import (
    GROUPS,
    PARTS,
    Catalogue,
    explained,
    find,
    group_named,
)

_COLUMNS_MAX: Final = 100
_INDENT: Final = "  "
_DEEP: Final = "    "


def explain(words: Sequence[str], console: Console) -> int:
    """Explain what is named so, or list what can be explained; returns the exit code.

    The answer in JSON is the explanations by their groups, whichever was asked for.

    Raises:
        UsageError: nothing has this name.
    """
    name = " ".join(words)
    catalogue = explained()
    found: Catalogue = {}
    if not name:
        found = catalogue
        _print_list(found, console)
    elif group := group_named(name):
        found = {group: catalogue[group]}
        _print_group(found[group], console)
    else:
        for group, thing in find(name, catalogue):
            if found:
                console.print()
            _print_thing(group, thing, console)
            found = {**found, group: [*found.get(group, ()), thing]}
    answer(console, found)
    return 0


def _print_list(catalogue: Catalogue, console: Console) -> None:
    console.print(Text("`splitbrain explain NAME` says what it means; NAME is one of these."))
    for group, texts in catalogue.items():
        console.print()
        title = f"{GROUPS.get(group, group)} ({len(texts)})"
        console.print(Text(title[0].upper() + title[1:], style="bold"))
        _wrap(", ".join(text.name for text in texts), console, _INDENT)


def _print_group(texts: Iterable[Explanation], console: Console) -> None:
    for text in texts:
        console.print(Text(printable(text.name), style="bold"))
        _wrap(text.says, console, _INDENT)


def _print_thing(group: str, thing: Explanation, console: Console) -> None:
    console.print(
        Text.assemble((printable(thing.name), "bold"), (f"  {group}", "dim")), soft_wrap=True
    )
    console.print()
    _wrap(thing.says, console, _INDENT)
    for field, title in PARTS:
        content: str = getattr(thing, field)
        if not content:
            continue
        console.print()
        console.print(Text(f"{_INDENT}{title}", style="bold"))
        if field == "breaks" and "\n" in content:
            for line in content.splitlines():
                console.print(Text(f"{_DEEP}{printable(line)}".rstrip()), soft_wrap=True)
        else:
            _wrap(content, console, _DEEP)


def _wrap(content: str, console: Console, indent: str) -> None:
    """Print sentences within the terminal's width; a name is never cut in two."""
    lines = textwrap.wrap(
        printable(content),
        min(console.width, _COLUMNS_MAX),
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in lines:
        console.print(Text(line), soft_wrap=True)
