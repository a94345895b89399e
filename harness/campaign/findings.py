"""The command ``splitbrain findings``: known losses of real systems, each shown by one command.

A known loss is a suite with a table ``known_loss``, in the folder ``findings`` beside a system's
adapter. Its matrices that expect ``invalid`` show the loss, the others are its control. Source:
docs/findings.md.
"""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console
from rich.text import Text

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.explanation import KnownLoss
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.suite.command import SuiteOptions, ledger_path, run_suite
from splitbrain.harness.campaign.suite.ledger import Ledger
from splitbrain.harness.campaign.suite.reading import check_cells, plan, read_suite
from splitbrain.harness.campaign.suite.tally import NightTally, nights_of
from splitbrain.harness.console.console_lines import say
from splitbrain.harness.console.standard_streams import LastingConsole, answer
from splitbrain.harness.folder.results import (
    EXIT_HARNESS_FAILED,
    EXIT_INVALID,
    EXIT_UNKNOWN,
    EXIT_VALID,
    worst,
)
from splitbrain.systems.registry import finding_files

_NEXT: Final = "`splitbrain findings` lists them"


class ListedFinding(msgspec.Struct, frozen=True):
    """One known loss of the list."""

    name: str
    #: Systems of its runs, with their versions.
    systems: tuple[str, ...]
    #: Runs that must show it, of how many; and runs of its control.
    at_least: int
    runs: int
    control_runs: int
    words: KnownLoss


class ShownFinding(msgspec.Struct, frozen=True):
    """Outcome of one night of a known loss."""

    name: str
    exit_code: int
    #: Runs that showed it, of those that are over; and the least that must.
    shown: int
    runs: int
    at_least: int
    #: Runs of the control with a violation, and that are valid, of those that are over.
    control_violated: int
    control_valid: int
    control_runs: int

    @property
    def sentence(self) -> str:
        """Return k of n, and whether that is as recorded."""
        standing = {
            EXIT_VALID: "as recorded",
            EXIT_INVALID: "NOT as recorded",
            EXIT_UNKNOWN: "nothing can be said yet",
        }.get(self.exit_code, "the harness failed")
        return (
            f"{self.name}: shown in {self.shown} of {self.runs} runs (at least {self.at_least} "
            f"must), the control valid in {self.control_valid} of {self.control_runs}: {standing}"
        )


def list_findings(console: Console) -> int:
    """Print the known losses; returns the exit code."""
    listed = listed_findings()
    for finding in listed:
        console.print(
            Text.assemble(
                (finding.name, "bold"), (f"  {', '.join(finding.systems)}, ", "dim"),
                (finding.words.standing, "dim"),
            ),
            soft_wrap=True,
        )  # fmt: skip
        say(console, f"  {finding.words.title}.")
    if listed:
        sentence = "`splitbrain findings run NAME` shows one, `splitbrain explain NAME` tells it."
        console.print(Text(sentence, style="dim"), soft_wrap=True)
    else:
        say(console, "No system has a known loss here.")
    answer(console, listed)
    return EXIT_VALID


def listed_findings() -> list[ListedFinding]:
    """Return the known losses of all systems; raise UsageError for a file that is none."""
    return [_listed(name, file) for name, file in finding_files().items()]


def run_findings(names: Sequence[str], options: SuiteOptions, console: Console) -> int:
    """Show known losses, all of them if none is named; return the exit code of the worst.

    0: shown as often as recorded, and the control valid; 1: either differs; 2: it is not over, or
    a control proved nothing; 3: the harness failed.

    Raises:
        UsageError: there is no such known loss, or its suite cannot be run; nothing was started.
    """
    files = finding_files()
    for name in names:
        if name not in files:
            problem = f"there is no known loss called {name!r}"
            raise UsageError(problem, or_nearest(name, files, "known losses"))
    chosen = {name: files[name] for name in dict.fromkeys(names or files)}
    runs = 0
    for name, file in chosen.items():
        _listed(name, file)
        planned = plan(read_suite(file), 0)
        runs += len(planned)
        if options.check:
            check_cells(file, planned)
    if not names:
        what = counted(len(chosen), "known loss", "known losses")
        say(console, f"{what}, {counted(runs, 'run')}; name those to be shown, or all are.")
    # The answer in JSON is this command's.
    beside = LastingConsole(stderr=console.stderr)
    shown: list[ShownFinding] = []
    interrupted = threading.Event()
    options = msgspec.structs.replace(options, interrupted=interrupted)
    for name, file in chosen.items():
        run_suite(file, options, beside)
        lines = Ledger(ledger_path(options)).lines()
        shown.append(shown_finding(nights_of(lines, name)[-1]))
        if interrupted.is_set():
            if left := [*chosen][len(shown) :]:
                say(console, f"Ended early; not begun: {', '.join(left)}.")
            break
    for finding in shown:
        style = "" if finding.exit_code == EXIT_VALID else "red"
        say(console, finding.sentence, style)
    answer(console, shown)
    return worst([EXIT_VALID, *(finding.exit_code for finding in shown)])


def shown_finding(night: NightTally) -> ShownFinding:
    """Return the outcome of a night of a suite that shows a known loss."""
    cells = [cell for cell in night.cells if cell.planned.expect == "invalid"]
    control = [cell for cell in night.cells if cell.planned.expect == "valid"]
    if night.violations or (night.toothless and not night.failures):
        code = EXIT_INVALID
    elif night.failures:
        code = EXIT_HARNESS_FAILED
    else:
        code = EXIT_UNKNOWN if night.exit_code else EXIT_VALID
    return ShownFinding(
        name=night.began.suite,
        exit_code=code,
        shown=sum(cell.as_expected for cell in cells),
        runs=sum(cell.finished for cell in cells),
        at_least=sum(cell.planned.at_least for cell in cells),
        control_violated=sum(cell.counts["invalid"] for cell in control),
        control_valid=sum(cell.counts["valid"] for cell in control),
        control_runs=sum(cell.finished for cell in control),
    )


def _listed(name: str, file: Path) -> ListedFinding:
    """Read a known loss; raise UsageError if it is none."""
    read = read_suite(file)
    words, runs = read.suite.known_loss, plan(read, 0)
    loss = [run for run in runs if run.expect == "invalid"]
    problem = None
    if words is None:
        problem = "has no table [known_loss]"
    elif read.suite.name != name:
        problem = f"has the name {read.suite.name!r}, and its file another one"
    elif not loss or len(loss) == len(runs):
        problem = "needs a matrix that expects invalid, and one that expects valid as its control"
    if problem is not None or words is None:
        raise UsageError(
            f"the known loss {file} {problem}", "`splitbrain docs findings` tells what it needs"
        )
    return ListedFinding(
        name=name,
        systems=tuple(dict.fromkeys(str(run.options.get("system")) for run in runs)),
        at_least=sum({run.cell: run.at_least for run in loss}.values()),
        runs=len(loss),
        control_runs=len(runs) - len(loss),
        words=words,
    )
