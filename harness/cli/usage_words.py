"""Says in our words what the command line's parser refused, and reads numbers strictly.

The parser's own messages speak of tokens, parameters and types, and name no next step.
"""

import re
from collections.abc import Sequence

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

_SUGGESTION = re.compile(r"Did you mean (\S+)\?")


def whole_number(type_: object, tokens: Sequence[Token]) -> int:
    """Return the value of an option that counts; the parser would take 2.5 for 2.

    Raises:
        UsageError: it is no whole number.
    """
    del type_
    try:
        return int(tokens[0].value)
    except ValueError as error:
        raise UsageError(
            f"{tokens[0].keyword} cannot be {tokens[0].value!r}", "Choose a whole number"
        ) from error


def number(type_: object, tokens: Sequence[Token]) -> float:
    """Return the value of an option that measures.

    Raises:
        UsageError: it is no number.
    """
    del type_
    try:
        return float(tokens[0].value)
    except ValueError as error:
        raise UsageError(
            f"{tokens[0].keyword} cannot be {tokens[0].value!r}",
            "Choose a number without a unit, such as 60 or 0.5",
        ) from error


def in_our_words(
    error: CycloptsError, arguments: Sequence[str], commands: Sequence[str]
) -> UsageError:
    """Return the same refusal as a sentence of ours.

    Args:
        error: the parser's.
        arguments: the command line.
        commands: names of all commands.
    """
    first = arguments[0] if arguments else ""
    command = first if first in commands else ""
    help_ = f"`splitbrain {command} --help` shows what there is".replace("  ", " ")
    next_step = help_
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
