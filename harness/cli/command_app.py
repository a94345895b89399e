"""The command line as an object that each module of commands adds its own to."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from cyclopts import App, Parameter, Token

from splitbrain.contracts.errors import UsageError
from splitbrain.harness.folder.tool_version import tool_version
from splitbrain.history.durations import EXAMPLES, seconds_of
from splitbrain.history.seeds import WRITE_SEEDS, read_seeds

_Value = TypeVar("_Value", int, float)
app = App(
    name="splitbrain",
    help="Find the bugs that consensus systems have only under failure.",
    version=tool_version,
    version_flags=["--version"],
    # Ended by Ctrl-C means an exit code of ours and a sentence, never 130 in silence.
    suppress_keyboard_interrupt=False,
)


def _whole_number(_type: object, tokens: Sequence[Token]) -> int:
    """Return the value of an option that counts; the parser would take 2.5 for 2."""
    return _read(int, tokens[0], "Choose a whole number")


def _number(_type: object, tokens: Sequence[Token]) -> float:
    return _read(float, tokens[0], "Choose a number without a unit, such as 60 or 0.5")


def _seconds(_type: object, tokens: Sequence[Token]) -> float:
    return _read(seconds_of, tokens[0], f"Write a time such as {EXAMPLES}")


def _seeds(_type: object, tokens: Sequence[Token]) -> range:
    try:
        return read_seeds(tokens[0].value)
    except ValueError as error:
        raise UsageError(f"{tokens[0].keyword} {error}", WRITE_SEEDS) from error


def _read(read: Callable[[str], _Value], token: Token, next_step: str) -> _Value:
    try:
        return read(token.value)
    except ValueError as error:
        raise UsageError(f"{token.keyword} cannot be {token.value!r}", next_step) from error


#: An option that may be given several times.
Repeatable = Parameter(negative="", consume_multiple=False)
#: An option that counts, and one that measures.
Whole = Parameter(converter=_whole_number)
Number = Parameter(converter=_number)
#: A time, and seeds.
Seconds = Parameter(converter=_seconds)
Seeds = Parameter(converter=_seeds)
