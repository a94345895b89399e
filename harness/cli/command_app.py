"""The command line as an object that each module of commands adds its own to."""

from cyclopts import App, Parameter

from splitbrain.harness.cli.usage_words import number, whole_number
from splitbrain.harness.folder.tool_version import tool_version

app = App(
    name="splitbrain",
    help="Find the bugs that consensus systems have only under failure.",
    version=tool_version,
    version_flags=["--version"],
    # Ended by Ctrl-C means an exit code of ours and a sentence, never 130 in silence.
    suppress_keyboard_interrupt=False,
)

#: An option that may be given several times.
Repeatable = Parameter(negative="", consume_multiple=False)
#: An option that counts, and one that measures.
Whole = Parameter(converter=whole_number)
Number = Parameter(converter=number)
