"""The command ``splitbrain sim --scenario FILE``: runs one world that is given as data.

The way to try an edited scenario. It is run twice, like a failure of a sweep, and must come out the
same; its run folder is always kept, because the user of one world wants to look at it.
"""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.campaign.sweep.sweep_display import replay_command
from splitbrain.harness.campaign.sweep.trial import run
from splitbrain.harness.console.console_lines import say, write_lines
from splitbrain.harness.console.interrupts import Interrupts
from splitbrain.harness.console.waiting import Waiting
from splitbrain.harness.folder.results import EXIT_INVALID, EXIT_UNKNOWN, EXIT_VALID
from splitbrain.harness.folder.scenario_file import read_named_scenario, said_of
from splitbrain.harness.folder.simulation_outcome import JudgedOutcome
from splitbrain.harness.judge.simulated_outcomes import judged
from splitbrain.harness.run.options import check_bugs
from splitbrain.harness.run.world.folder import keep_sweep_run


def run_world(
    path: Path, console: Console, runs_folder: Path | None, *, with_hash: bool = False
) -> int:
    """Run a scenario, judge and keep it, and return the exit code.

    Without ``runs_folder`` nothing is kept; ``with_hash`` prints seed and trace hash last, as a
    sweep does.

    Raises:
        UsageError: the file holds no scenario that this version can run.
        HarnessError: it came out differently when it was run again, or no folder could be made.
    """
    from splitbrain.systems.registry import system

    scenario = read_named_scenario(path)
    say(console, f"splitbrain sim {scenario.system}, the world of {path}", "bold")
    with said_of(path), Interrupts(lambda sentence: say(console, sentence)):
        check_bugs(scenario.bugs, system(scenario.system))
        try:
            with Waiting(console).during(f"simulating {scenario.load_us / 1_000_000:g} s, twice"):
                first = judged(run(scenario))
                second = judged(run(scenario, is_recording=True))
        except KeyboardInterrupt:
            say(console, "interrupted: a simulated run leaves nothing until it is over.")
            return EXIT_UNKNOWN
    if first.outcome.trace_hash != second.outcome.trace_hash:
        raise HarnessError(
            "run the scenario twice",
            str(path),
            f"it had trace hash {first.outcome.trace_hash} and then {second.outcome.trace_hash}",
            "This is a defect of splitbrain; please report it with the file",
        )
    if runs_folder is not None:
        folder = str(keep_sweep_run(second, runs_folder))
        say(console, f"folder:  {folder}")
        say(console, f"replay:  {replay_command(folder)}")
    code = _show(second, console)
    if with_hash:
        write_lines(console, [f"{scenario.seed} {second.outcome.trace_hash}"])
    return code


def _show(came_to: JudgedOutcome, console: Console) -> int:
    steps = f"{came_to.outcome.steps:,} steps"
    unknown = came_to.undecided
    if came_to.failed_by:
        headline, style, code = "FAILED", "bold white on red", EXIT_INVALID
        sentence = f"{', '.join(came_to.failed_by)}: {came_to.sentence}"
    elif unknown:
        headline, style, code = "UNKNOWN", "bold black on yellow", EXIT_UNKNOWN
        name, reason = next(iter(unknown.items()))
        sentence = f"no alarm in {steps}, but {name} could not decide: {reason}"
    else:
        headline, style, code = "CLEAN", "bold black on green", EXIT_VALID
        sentence = f"no alarm in {steps}."
    console.print(Text.assemble((f" {headline} ", style), " ", sentence), soft_wrap=True)
    return code
