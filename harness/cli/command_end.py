"""The end of a command: its exit code, and for any error one sentence on standard error.

A fault of the user or the machine has no traceback, a defect of ours has one. Source: design,
section 6.
"""

import errno
import re
import traceback
from collections.abc import Callable, Sequence

from cyclopts import CycloptsError
from cyclopts.exceptions import (
    CoercionError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)
from rich.console import Console

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.nearest import or_nearest
from splitbrain.harness.console.plain_text import printable
from splitbrain.plugins.blame import authors_error

EXIT_HARNESS_FAILED = 3
EXIT_BAD_USAGE = 64
_SUGGESTION = re.compile(r"Did you mean (\S+)\?")
#: Errors of files that the environment causes; any other is a defect of ours.
_ENVIRONMENT = frozenset(
    {
        *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE),
        *(errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG),
    }
)


def exit_code_of(command: Callable[[], object], arguments: Sequence[str], names: list[str]) -> int:
    """Carry out a command and return its exit code, whatever comes of it.

    ``command`` returns its exit code, or anything else for 0; the command line and the names of all
    commands are for refusals.
    """
    try:
        result = command()
    except CycloptsError as error:
        refusal = _in_our_words(error, arguments, names)
        return _end(str(refusal), refusal.exit_code)
    except UsageError as error:
        return _end(" ".join(str(error).splitlines()), error.exit_code)
    except HarnessError as error:
        return _end(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _end("interrupted", EXIT_HARNESS_FAILED)
    except OSError as error:
        if error.errno not in _ENVIRONMENT:
            return _defect(error)
        where = "" if error.filename is None else f" ({error.filename})"
        return _end(
            f"could not use a file{where}: {error.strerror}. "
            "Make room or choose another place, and try again",
            EXIT_HARNESS_FAILED,
        )
    except Exception as error:  # noqa: BLE001 - the last resort
        return _defect(error)
    return result if isinstance(result, int) else 0


def _defect(error: Exception) -> int:
    """Tell of a defect of ours: the traceback is what the report of it needs."""
    if (theirs := authors_error(error)) is not None:
        return _end(str(theirs), theirs.exit_code)
    traceback.print_exc()
    return _end("this is a defect of splitbrain; please report it", EXIT_HARNESS_FAILED)


def _end(sentence: str, code: int) -> int:
    # Parts of it came from outside: names, paths, a node's last lines.
    lines = f"splitbrain: {sentence.removesuffix('.')}".splitlines()
    errors = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)
    errors.print("\n".join(map(printable, lines)))
    return code


def _in_our_words(
    error: CycloptsError, arguments: Sequence[str], commands: Sequence[str]
) -> UsageError:
    """Return the parser's refusal as a sentence of ours; ``commands`` are the names of all.

    Its own messages speak of tokens, parameters and types, and name no next step.
    """
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
            problem = f"missing argument {error.argument.name.lstrip('-').upper()}"
        case RepeatArgumentError():
            problem, next_step = f"{error.token.keyword} is given twice", "Give it once"
        case CoercionError() if error.token is not None:
            # A word without an option's name is known by that of its place.
            place = error.argument.name.lstrip("-").upper() if error.argument else "it"
            problem = f"{error.token.keyword or place} cannot be {error.token.value!r}"
        case _:
            problem = " ".join(str(error).split()).rstrip(".")
    return UsageError(problem, next_step)
