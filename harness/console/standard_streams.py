"""Standard input, output and error as a command needs them, whatever the shell handed over.

A stream may be closed (``>&-``), may lose its reader in the middle (``| head -1``), may not know
UTF-8. None of that is a reason to end a run, to lose its exit code or to show a traceback.
"""

import os
import sys
from contextlib import suppress
from typing import TextIO

import msgspec
from rich.console import Console

_DESCRIPTORS = 3


class LastingConsole(Console):
    """A console that falls silent when its reader has gone; the command goes on to its end."""

    #: Whether the answer goes out as JSON, and this console's words beside it.
    is_beside_json = False

    def on_broken_pipe(self) -> None:
        """Say nothing more; the library would end the process with the code of a violation."""
        self.quiet = True
        forget_output()


def output(*, as_json: bool = False) -> Console:
    """Where a command tells what it does; beside JSON nothing may stand on standard output."""
    console = LastingConsole(stderr=as_json)
    console.is_beside_json = as_json
    return console


def answer(console: Console, record: object) -> None:
    """Write the answer of a command as one line of JSON, where its user asked for that."""
    from splitbrain.history.identity import stand_in

    if isinstance(console, LastingConsole) and console.is_beside_json:
        write_bytes(msgspec.json.encode(record, enc_hook=stand_in) + b"\n")


def errors() -> Console:
    """Where a command tells what belongs to no result."""
    return Console(stderr=True, soft_wrap=True, highlight=False, markup=False)


def prepare_streams() -> None:
    """Open what is closed, and let no character be one that cannot be shown.

    To be called before any file is opened: the next one would get the number of a closed stream,
    and lines for the user would end up in it.
    """
    for descriptor in range(_DESCRIPTORS):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
    # Python made no streams of those that were closed, whatever their annotations say.
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stdout = _writer(1)
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = _writer(2)
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")


def write_bytes(content: bytes) -> None:
    """Put bytes on standard output; a reader that has gone does not want them."""
    try:
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
    except BrokenPipeError:
        forget_output()


def finish_output() -> None:
    """Write what is still held back; to be called last, since Python's own end would complain."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        forget_output()


def forget_output() -> None:
    """From now on what is written to standard output goes nowhere."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    try:
        # A closed stream, or one that a test has put in its place, has no number.
        with suppress(OSError, ValueError):
            os.dup2(devnull, sys.stdout.fileno())
    finally:
        os.close(devnull)


def _writer(descriptor: int) -> TextIO:
    return open(descriptor, "w", encoding="utf-8", closefd=False)
