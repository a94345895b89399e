"""The environment's faults, as opposed to violations (verdicts) and bugs of our own."""

from pathlib import Path
from typing import Final

import msgspec

#: Errors of decoding foreign JSON: malformed or not the record, no UTF-8 (which is no
#: ``DecodeError``), nested too deeply.
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def in_one_line(error: BaseException) -> str:
    """Return the kind of an error and its text, without line breaks."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class HarnessError(Exception):
    """The harness or its environment could not do something; exit code 3.

    The action is a clause ("start the container of n2"), the target a container, a file, a port;
    the problem is one clause, the next step one sentence.
    """

    exit_code = 3

    def __init__(self, action: str, target: str, problem: str, next_step: str) -> None:
        self.action = action
        self.target = target
        self.problem = problem
        self.next_step = next_step
        super().__init__(f"could not {action} ({target}): {problem}. {next_step}")


def not_written(action: str, path: Path, error: OSError) -> HarnessError:
    """Return the error of a run folder that refuses a file."""
    return HarnessError(
        action,
        str(path),
        str(error.strerror),
        "Make the run folder writable or choose another with --runs-folder.",
    )


class UsageError(HarnessError):
    """The user asked for something that does not exist or does not fit; exit code 64."""

    exit_code = 64

    def __init__(self, problem: str, next_step: str) -> None:
        super().__init__("understand the request", "command line", problem, next_step)
        self.args = (f"{problem}. {next_step}",)


class AdapterError(HarnessError):
    """Code of users does otherwise than its contract says; its author must repair it."""

    exit_code = 64


class CapabilityError(HarnessError):
    """A runtime was asked for something that it cannot do here; refused before the run."""
