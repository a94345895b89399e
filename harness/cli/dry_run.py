"""The schedule of a test that is not run: what would happen to whom, and when.

Starts nothing and needs no engine; one that answers is asked whether it can do it all.
"""

from collections.abc import Iterator

import msgspec
from rich.console import Console

from splitbrain.contracts.errors import CapabilityError, HarnessError, UsageError
from splitbrain.contracts.fault import Fault, Microseconds
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.runtime import SIMULATED
from splitbrain.contracts.words import counted
from splitbrain.harness.console.console_lines import say, write_lines
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.console.standard_streams import answer
from splitbrain.harness.folder.results import EXIT_VALID
from splitbrain.harness.run.options import PlannedTest, TestOptions, plan_test, refuse_faults
from splitbrain.nemesis.awaiting import sentence

_US_PER_S = 1_000_000


def show_schedules(options: TestOptions, seeds: range, console: Console) -> int:
    """Show the schedule of each seed; return the exit code.

    Raises:
        UsageError: something does not exist or does not fit.
        CapabilityError: the runtime cannot carry it out.
    """
    from splitbrain.runtimes.registry import runtime as runtime_of
    from splitbrain.runtimes.registry import runtime_names
    from splitbrain.systems.registry import system

    runtime = options.experiment.runtime
    if runtime not in runtime_names():
        next_step = or_nearest(runtime, runtime_names(), "runtimes")
        raise UsageError(f"there is no runtime {runtime!r}", next_step)
    adapter = system(options.experiment.system)
    unasked = ""
    schedules: dict[str, tuple[Fault, ...]] = {}
    for seed in seeds:
        experiment = msgspec.structs.replace(options.experiment, seed=seed)
        test = plan_test(msgspec.structs.replace(options, experiment=experiment), adapter)
        if runtime == SIMULATED:
            from splitbrain.harness.campaign.sweep.planned import check_plan

            check_plan(test)
        else:
            try:
                refuse_faults(test.schedule, adapter, runtime_of(runtime))
            except CapabilityError:
                raise
            except HarnessError as silent:
                unasked = f" Whether {runtime} can do it was not asked: {silent.problem}."
        title, *lines = schedule_lines(test)
        say(console, title, "bold")
        write_lines(console, lines)
        schedules[str(seed)] = test.schedule
    say(console, f"dry run: nothing was started.{unasked}")
    answer(console, {"schedules": schedules})
    return EXIT_VALID


def schedule_lines(test: PlannedTest) -> list[str]:
    """Return what is run, and each fault in the order in which they come."""
    experiment = test.experiment
    title = (
        f"splitbrain {test.system.name}-{test.workload.name}, seed {experiment.seed}: "
        f"{counted(len(test.nodes), 'node')}, {experiment.time_limit_s:g} s of load by "
        f"{counted(experiment.concurrency, 'client')} at {experiment.rate:g} operations a second, "
        f"on {experiment.runtime}; {counted(len(test.schedule), 'fault')}"
    )
    if experiment.settings:
        chosen = ", ".join(f"{name}={value}" for name, value in experiment.settings.items())
        title += printable(f"; {chosen}")
    rows = [tuple(_cells(fault)) for fault in sorted(test.schedule, key=lambda fault: fault.at_us)]
    if not rows:
        return [title]
    rows.insert(0, ("from", "for", "fault", "target", ""))
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [title, *("  " + _row(row, widths) for row in rows)]


def _row(cells: tuple[str, ...], widths: list[int]) -> str:
    # Times stand on the right.
    shown = [cell.rjust(width) for cell, width in zip(cells[:2], widths, strict=False)]
    shown += [cell.ljust(width) for cell, width in zip(cells[2:], widths[2:], strict=True)]
    return "  ".join(shown).rstrip()


def _cells(fault: Fault) -> Iterator[str]:
    yield _seconds(fault.at_us)
    yield _seconds(fault.duration_us) if fault.duration_us else "at once"
    yield fault.kind
    yield fault.target
    options = [f"{name}={value}" for name, value in fault.options.items()]
    after = [] if fault.when is None else [f"after {sentence(fault.when)}"]
    yield printable(", ".join([*after, *options]))


def _seconds(time_us: Microseconds) -> str:
    return f"{time_us / _US_PER_S:.3f} s"
