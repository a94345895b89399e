"""The command line: from its words to the exit code that says what came of them.

Errors for users are one sentence without a traceback. Source: design, section 6.
"""

import sys
from collections.abc import Sequence

from splitbrain.contracts.errors import UsageError
from splitbrain.harness.cli import campaign_commands, lake_commands, run_commands, setup_commands
from splitbrain.harness.cli.command_app import app
from splitbrain.harness.cli.command_end import exit_code_of
from splitbrain.harness.console.console_lines import say
from splitbrain.harness.console.standard_streams import errors, finish_output, prepare_streams
from splitbrain.harness.folder.tool_version import other_tool
from splitbrain.history.reproduce_line import without_maker

#: Importing them has added their commands.
COMMAND_MODULES = (run_commands, campaign_commands, lake_commands, setup_commands)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the ``splitbrain`` command; ends the process with its exit code."""
    prepare_streams()
    code = run(sys.argv[1:] if arguments is None else arguments)
    finish_output()
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; prints one sentence for any error."""
    names = [name for name in app if not name.startswith("-")]
    return exit_code_of(lambda: _carry_out(arguments), arguments, names)


def _carry_out(arguments: Sequence[str]) -> object:
    """Carry out a command; another splitbrain that made the line than this one is told first."""
    try:
        words, made_by = without_maker(arguments)
    except ValueError as error:
        next_step = "Write a version, or VERSION+COMMIT, such as 0.2.0+4795ac6"
        raise UsageError(str(error), next_step) from error
    for line in other_tool(made_by):
        say(errors(), line)
    return app(words, exit_on_error=False, print_error=False, result_action="return_value")
