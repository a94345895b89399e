"""Prints sentences and lines on a console, harmless and never wrapped: programs read them too."""

from collections.abc import Iterable
from contextlib import suppress

from rich.console import Console
from rich.text import Text

from splitbrain.harness.console.plain_text import printable


def say(console: Console, sentence: str, style: str = "") -> None:
    """Print one sentence."""
    console.print(Text(printable(sentence), style=style), soft_wrap=True)


def say_if_read(console: Console, line: Text) -> None:
    """Print one line of something that goes on, also where nobody reads any more."""
    with suppress(OSError, SystemExit):
        console.print(line, soft_wrap=True)


def write_lines(console: Console, lines: Iterable[str]) -> None:
    """Write lines without any drawing; a reader who stopped reading does not want the rest."""
    try:
        for line in lines:
            console.file.write(line + "\n")
        console.file.flush()
    except BrokenPipeError:
        console.on_broken_pipe()
