"""The command ``splitbrain sim``: checks its options, sweeps, and reports.

Source: design, sections 6 and 9.
"""

from functools import partial
from pathlib import Path

import msgspec
from rich.console import Console
from rich.text import Text

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.harness.campaign.sweep.options import SEEDS_WITHIN_TIME, SimOptions
from splitbrain.harness.campaign.sweep.sweep import Sweep, SweepOrder
from splitbrain.harness.campaign.sweep.sweep_display import SweepDisplay, replay_command
from splitbrain.harness.campaign.sweep.sweep_output import (
    alarms_of_sweep,
    make_output_folder,
    seeds_written,
    sweep_markdown,
    write_output,
)
from splitbrain.harness.campaign.sweep.sweep_summary import show_summary, sweep_answer
from splitbrain.harness.campaign.sweep.trial import SeedResult, drawn_traits, run, try_seed
from splitbrain.harness.campaign.sweep.world_traits import SAMPLE, check_world, read_world
from splitbrain.harness.console.console_lines import say, write_lines
from splitbrain.harness.console.interrupts import Interrupts, stopped_in_order
from splitbrain.harness.console.standard_streams import answer
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.console.waiting import Waiting
from splitbrain.harness.folder.results import EXIT_INVALID, EXIT_UNKNOWN, EXIT_VALID
from splitbrain.harness.folder.scenario_file import read_named_scenario, said_of
from splitbrain.harness.folder.scenario_text import scenario_words
from splitbrain.harness.folder.simulation_outcome import JudgedOutcome
from splitbrain.harness.folder.tool_version import other_tool, this_tool
from splitbrain.harness.judge.simulated_outcomes import judged
from splitbrain.harness.report.github import tell_github
from splitbrain.harness.run.options import (
    check_bugs,
    check_runs_folder,
    check_simulated,
    chosen_state_machine,
)
from splitbrain.harness.run.world.folder import keep_sweep_run
from splitbrain.history.options import refuse_unfit
from splitbrain.history.reproduce_line import line_of
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.seeds import seeds_named


def run_sim(options: SimOptions, console: Console) -> int:
    """Run one scenario, or sweep; return the exit code.

    Raises:
        UsageError: something does not exist or does not fit.
        HarnessError: no worker process could be started, or no folder made.
    """
    if options.like is not None:
        return _run_like(options, options.like, console)
    if options.scenario is None:
        return run_sweep(Sweep(order_of(options), Stop()), console)
    # Refuses options that a scenario has itself, and options of sweeps.
    mismatch = "--scenario, which is one world and says all of it"
    refuse_unfit(options, "scenario", mismatch, "Leave one of them out")
    check_runs_folder(options.runs_folder)
    runs_folder = options.runs_folder if options.keep else None
    return run_world(options.scenario, console, runs_folder, with_hash=options.trace_hash)


def _run_like(options: SimOptions, run: Path, console: Console) -> int:
    from splitbrain.harness.campaign.sweep import like_command

    mismatch = "--like, which has all of it from the run and keeps the first seed that fails alike"
    refuse_unfit(options, "like", mismatch, "Leave one of them out")
    seeds = options.seeds or like_command.SEEDS
    usual = SimOptions().runs_folder
    runs_folder = None if options.runs_folder == usual else options.runs_folder
    if runs_folder is not None:
        check_runs_folder(runs_folder)
    system = None if options.system == SimOptions().system else options.system
    return like_command.run_like(run, console, seeds, options.jobs, runs_folder, system)


def order_of(options: SimOptions) -> SweepOrder:
    """Return the sweep's order; raise UsageError if something does not exist or fit."""
    from splitbrain.systems.registry import system

    seeds = options.seeds
    if seeds is None:
        if options.time_limit_s is None:
            raise UsageError(
                "--seeds is missing",
                "Write --seed 7 or --seeds 0:1000, or name one world with --scenario FILE",
            )
        seeds = SEEDS_WITHIN_TIME
    check_runs_folder(options.runs_folder)
    adapter = system(options.system)
    check_bugs(options.bugs, adapter)
    chosen_state_machine(options.state_machine, adapter)
    check_simulated(adapter)
    if options.world is not None:
        check_world(read_world(options.world), [drawn_traits(seed, options) for seed in SAMPLE])
    make_output_folder(options)
    options = msgspec.structs.replace(options, runs_folder=options.runs_folder.absolute())
    return SweepOrder(options=options, seeds=seeds, try_seed=partial(try_seed, options))


def run_sweep(sweep: Sweep, console: Console) -> int:
    """Sweep, show it, return the exit code; raise HarnessError if no worker can be started."""
    order, stop = sweep.order, sweep.stop
    with stopped_in_order(stop, left="left at once; run folders of failures found so far stay."):
        keep, limit_s = order.options.keep, order.options.time_limit_s
        title, count = title_of(order), len(order.seeds)
        with (
            seeds_written(order) as written,
            SweepDisplay(console, title, count, sweep.tally, keep, time_limit_s=limit_s) as display,
        ):

            def took(result: SeedResult) -> None:
                written(result)
                display.took(result)

            sweep.carry_out(took)
        elapsed_s = display.elapsed_s
    found = sweep_answer(sweep.tally, order, is_whole=not sweep.is_cut_short)
    if order.options.output is not None:
        write_output(
            order.options.output,
            sweep.tally,
            order,
            found,
            elapsed_s=elapsed_s,
            interrupted=stop.is_set(),
            during=Waiting(console).during,
        )
    show_summary(sweep.tally, order, console, elapsed_s, interrupted=stop.is_set())
    answer(console, found)
    tell_github(
        alarms_of_sweep(sweep.tally, found),
        lambda: sweep_markdown(sweep.tally, order, elapsed_s, interrupted=stop.is_set()),
        order.options.system,
    )
    if order.options.trace_hash:
        # By seed; nothing comes after them.
        hashes = sorted(sweep.tally.hashes.items())
        write_lines(console, [f"{seed} {trace_hash}" for seed, trace_hash in hashes])
    return sweep.tally.exit_code(is_whole=not sweep.is_cut_short)


def title_of(order: SweepOrder) -> str:
    """Return the line above the sweep."""
    options = order.options
    bugs = f", with {', '.join(options.bugs)}" if options.bugs else ""
    above = f", {options.state_machine}" if options.state_machine else ""
    world = f", with {options.world}" if options.world else ""
    promise = ", beyond the promise" if options.beyond_promise else ""
    jobs = "1 process" if options.jobs == 1 else f"{options.jobs} processes"
    how = f"{above}{bugs}{promise}{world}"
    return f"splitbrain sim {options.system}, {seeds_named(order.seeds)}{how}, {jobs}"


def run_world(
    word: str, console: Console, runs_folder: Path | None, *, with_hash: bool = False
) -> int:
    """Run a scenario that is given as data, judge and keep it, and return the exit code.

    The way to try an edited scenario. It is run twice, like a failure of a sweep, and must come out
    the same. Without ``runs_folder`` nothing is kept; ``with_hash`` prints seed and trace hash
    last, as a sweep does.

    Raises:
        UsageError: the file holds no scenario that this version can run.
        HarnessError: it came out differently when it was run again, or no folder could be made.
    """
    from splitbrain.systems.registry import system

    named = read_named_scenario(word)
    scenario = named.scenario
    say(console, f"splitbrain sim {scenario.system}, the world of {named.source}", "bold")
    for line in other_tool(named.made_by):
        say(console, line)
    with said_of(named.source), Interrupts(lambda sentence: say(console, sentence)):
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
            named.source,
            f"it had trace hash {first.outcome.trace_hash} and then {second.outcome.trace_hash}",
            "This is a defect of splitbrain; please report it with the file",
        )
    path, folder = word, None
    if runs_folder is not None:
        folder = keep_sweep_run(second, runs_folder)
        path = str(RunFolder(folder.absolute()).scenario)
        say(console, f"folder:    {folder}")
        say(console, f"replay:    {replay_command(str(folder))}")
    line = line_of(scenario_words(scenario, this_tool(), path), this_tool())
    say(console, f"reproduce: {line}")
    code = _show(second, console)
    made = {"exit_code": code, "folder": folder}
    found = {"failed_by": second.failed_by, "sentence": second.sentence}
    answer(console, {**made, **found, "unknown": second.undecided, "reproduce": line})
    if with_hash:
        write_lines(console, [f"{scenario.seed} {second.outcome.trace_hash}"])
    return code


def _show(made: JudgedOutcome, console: Console) -> int:
    steps = f"{made.outcome.steps:,} steps"
    unknown = made.undecided
    if made.failed_by:
        headline, style, code = "FAILED", "bold white on red", EXIT_INVALID
        sentence = f"{', '.join(made.failed_by)}: {made.sentence}"
    elif unknown:
        headline, style, code = "UNKNOWN", "bold black on yellow", EXIT_UNKNOWN
        name, reason = next(iter(unknown.items()))
        sentence = f"no alarm in {steps}, but {name} could not decide: {reason}"
    else:
        headline, style, code = "CLEAN", "bold black on green", EXIT_VALID
        sentence = f"no alarm in {steps}."
    console.print(Text.assemble((f" {headline} ", style), " ", sentence), soft_wrap=True)
    return code
