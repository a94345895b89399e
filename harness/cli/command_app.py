"""The command line as an object that each module of commands adds its own to."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Final, TypeVar

from cyclopts import App, Group, Parameter, Token

from splitbrain.contracts.errors import UsageError
from splitbrain.harness.cli.completion import values_of
from splitbrain.harness.folder.tool_version import tool_version
from splitbrain.history.durations import EXAMPLES, seconds_of
from splitbrain.history.seeds import WRITE_SEEDS, read_seeds

_Value = TypeVar("_Value", int, float)
_Command = TypeVar("_Command", bound=Callable[..., int])


def _default_words(value: object) -> str | None:
    """Return a default for a help text; a switch that is off needs none."""
    if value is None or value is False:
        return None
    return f"{value:g}" if isinstance(value, float) else str(value)


app = App(
    name="splitbrain",
    help="Find the bugs that consensus systems have only under failure.",
    version=tool_version,
    version_flags=["--version", "-V"],
    default_parameter=Parameter(show_default=_default_words),
    # Before the others: a word that is given by its place is among them.
    group_parameters=Group("Options", sort_key=0),
    # Of --help and --version, which are in no group of commands.
    group_commands=Group("Options of splitbrain itself", sort_key=99),
    # Ended by Ctrl-C means an exit code of ours and a sentence, never 130 in silence.
    suppress_keyboard_interrupt=False,
)


#: Headings of the commands, in their order.
ONE_RUN: Final = Group("Make a run and judge it", sort_key=1)
MANY_RUNS: Final = Group("Make many runs and weigh them", sort_key=2)
TABLES: Final = Group("All runs together", sort_key=3)
SETUP: Final = Group("Systems and this machine", sort_key=4)
#: Headings of options, in their order.
RESULTS: Final = "Results"
_OPTION_HEADINGS: Final = (
    *("Worlds", "Replays", "Search", "History", "System", "Load", "Faults"),
    *("Night", "Policy", "Lake"),
    *("Steps of a simulated run", RESULTS),
)
#: Example command lines by the names of the commands.
EXAMPLE_LINES: Final[dict[str, tuple[str, ...]]] = {}


def command(name: str, heading: Group, *examples: str) -> Callable[[_Command], _Command]:
    """Add a function to the command line; its help ends with the examples."""
    EXAMPLE_LINES[name] = examples
    shown = "\n".join(["Examples:", "", *(f"- `splitbrain {example}`" for example in examples)])

    def decorated(function: _Command) -> _Command:
        app.command(function, name=name, group=heading, help_epilogue=shown)
        return function

    return decorated


@cache
def heading_of_options(name: str) -> Group:
    """Return the heading of some options of a command."""
    return Group(name, sort_key=_OPTION_HEADINGS.index(name) + 1)


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


def completed(place: str) -> Parameter:
    """Return what makes the shell offer values (``harness.cli.completion``) for an option or place.

    A module that takes long to load must not be asked where nobody completes anything.
    """
    return Parameter(completer=lambda context: values_of(place, [context.incomplete]))


#: Run folder that is given by its place.
OfRun = completed("check")
#: An option that may be given several times.
Repeatable = Parameter(negative="", consume_multiple=False)
#: An option that counts, and one that measures.
Whole = Parameter(converter=_whole_number, metavar="N")
Number = Parameter(converter=_number, metavar="NUMBER")
#: An option about what a command leaves.
OfResults = Parameter(group=heading_of_options(RESULTS))
OfHistories = Parameter(group=heading_of_options("History"))
OfNights = Parameter(group=heading_of_options("Night"))
OfPolicies = Parameter(group=heading_of_options("Policy"))
OfLakes = Parameter(group=heading_of_options("Lake"))
OfSystems = Parameter(group=heading_of_options("System"))
#: Whether the answer is printed as JSON.
Json = Annotated[
    bool,
    OfResults,
    Parameter(
        name="--json",
        negative="",
        help="Print the answer as one line of JSON; everything else goes to standard error.",
    ),
]
#: A time, and seeds.
Seconds = Parameter(converter=_seconds, metavar="TIME")
Seeds = Parameter(converter=_seeds, metavar="SEED|FIRST:END")
