"""Says in our words what the command line's parser refused, and reads numbers strictly.

The parser's own messages speak of tokens, parameters and types, and name no next step.
"""

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from cyclopts import CycloptsError, Token
from cyclopts.exceptions import (
    CoercionError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.nearest import or_nearest

_Number = TypeVar("_Number", int, float)
_SUGGESTION = re.compile(r"Did you mean (\S+)\?")


def whole_number(_type: object, tokens: Sequence[Token]) -> int:
    """Return the value of an option that counts; the parser would take 2.5 for 2.

    Raises:
        UsageError: it is no whole number.
    """
    return _read(int, tokens[0], "Choose a whole number")


def number(_type: object, tokens: Sequence[Token]) -> float:
    """Return the value of an option that measures.

    Raises:
        UsageError: it is no number.
    """
    return _read(float, tokens[0], "Choose a number without a unit, such as 60 or 0.5")


def _read(read: Callable[[str], _Number], token: Token, next_step: str) -> _Number:
    try:
        return read(token.value)
    except ValueError as error:
        raise UsageError(f"{token.keyword} cannot be {token.value!r}", next_step) from error


def in_our_words(
    error: CycloptsError, arguments: Sequence[str], commands: Sequence[str]
) -> UsageError:
    """Return the same refusal as a sentence of ours; ``commands`` are the names of all."""
    first = arguments[0] if arguments else ""
    command = first if first in commands else ""
    next_step = f"`splitbrain {command} --help` shows what there is".replace("  ", " ")
    match error:
        case UnknownCommandError() if first.startswith("-"):
            problem = f"the option {first} stands where a command is expected"
        case UnknownCommandError():
            problem = f"there is no command {first!r}"
            next_step = or_nearest(first, commands, "commands")
        case UnknownOptionError():
            option = error.token.keyword or error.token.value
            problem = f"`splitbrain {command}` has no option {option}"
            if near := _SUGGESTION.search(str(error)):
                next_step = f"Did you mean {near[1]}?"
        case UnusedCliTokensError():
            word = (error.unused_tokens or list(arguments[-1:]))[0]
            problem = f"{word!r} is one word too many"
        case MissingArgumentError() if error.argument and error.argument.name in arguments:
            problem = f"{error.argument.name} has no value"
        case MissingArgumentError() if error.argument:
            problem = f"the {error.argument.name.lstrip('-').upper()} is missing"
        case RepeatArgumentError():
            problem, next_step = f"{error.token.keyword} is given twice", "Give it once"
        case CoercionError() if error.token is not None:
            problem = f"{error.token.keyword} cannot be {error.token.value!r}"
        case _:
            problem = " ".join(str(error).split()).rstrip(".")
    return UsageError(problem, next_step)
