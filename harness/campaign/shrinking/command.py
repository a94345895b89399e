"""``splitbrain shrink``: makes a failed run as small as it can be while it fails alike.

The run's runtime chooses the oracle for smaller plans (``exact_search``, ``run_search``); one
search under one budget goes on until it ends, the budget is used up or the user interrupts. The
searched run is not touched. Must never show a plan that was not seen to fail. Source: issue 5, item
8; issue 6, item 6; issue 19, item 3.
"""

import shlex
import time
from collections.abc import Callable

from rich.console import Console

from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.replaying.recorded import check_code
from splitbrain.harness.campaign.shrinking.description import (
    Kept,
    headline,
    name_of,
    size_of,
    to_be_continued,
)
from splitbrain.harness.campaign.shrinking.exact_search import ExactSearch
from splitbrain.harness.campaign.shrinking.options import ShrinkOptions, is_simulated
from splitbrain.harness.campaign.shrinking.plan_runs import LoudInterrupts, ready_test
from splitbrain.harness.campaign.shrinking.rehearsal import Rehearse, rehearsed
from splitbrain.harness.campaign.shrinking.run_search import RunSearch
from splitbrain.harness.console.console_lines import say
from splitbrain.harness.console.interrupts import stopped_in_order
from splitbrain.harness.console.standard_streams import answer
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.folder.results import EXIT_HARNESS_FAILED, EXIT_UNKNOWN, EXIT_VALID
from splitbrain.harness.folder.store import find_run
from splitbrain.harness.report.alarms import Alarm
from splitbrain.harness.report.github import summary_of, tell_github
from splitbrain.harness.run.options import PreparedTest, TestOptions
from splitbrain.nemesis.search import INTERRUPTED, SearchBudget
from splitbrain.patched.loading import installed_options
from splitbrain.systems.registry import system_option


def shrink(
    options: ShrinkOptions,
    console: Console,
    *,
    leave: Callable[[int], None] | None = None,
    ready: Callable[[TestOptions], PreparedTest] = ready_test,
    rehearse: Rehearse = rehearsed,
) -> int:
    """Shrink a run, show the result, and return the exit code.

    A search cut short by its limits succeeds; an interrupted one, or one whose runs the harness
    could no longer carry out, does not. ``leave`` ends the process at the last Ctrl-C; it,
    ``ready`` and ``rehearse`` are replaced by tests.

    Raises:
        UsageError: the run cannot be shrunk, or an option does not fit.
        HarnessError: it does not fail again, or nothing can be run.
    """
    folder = find_run(options.run)
    check_code(folder, "shrink", options.system)
    stop = Stop()
    # Checks every option as it is made.
    shrinking = (
        ExactSearch(options, folder)
        if is_simulated(folder)
        else RunSearch(options, folder, stop, ready, rehearse)
    )
    limits = shrinking.limits
    with stopped_in_order(
        stop,
        sentence="interrupted: the smallest so far is kept; once more to leave at once",
        left="left at once; a folder that was made already stays.",
        leave=leave,
        kind=LoudInterrupts,
    ) as interrupts:
        size = f"{name_of(folder)}: {size_of(shrinking.start).text}"
        most = f"{counted(limits.tries, limits.called)} and {limits.seconds:g} s"
        say(console, f"splitbrain shrink {size}; {shrinking.wanted}; at most {most}", "bold")
        tries, seconds, called = limits.tries, limits.seconds, f"{limits.called}s"
        budget = SearchBudget(tries, seconds, time.monotonic, stop.is_set, called=called)
        result = shrinking.search(budget, console, interrupts)
        cut_short, seconds = budget.exhausted(), budget.elapsed_s
        if isinstance(result, str):
            say(console, f"{cut_short}: {result}")
            return EXIT_UNKNOWN
        kept = shrinking.keep(console, cut_short)
    lines = [headline(result, cut_short, seconds), *_lines(kept, cut_short, options.system)]
    for line in lines:
        say(console, line)
    if kept.last is not None:
        kept.last()
    code = EXIT_UNKNOWN if cut_short == INTERRUPTED else EXIT_VALID
    if budget.broken is not None:
        say(console, f"the search ended early: {budget.broken}")
        code = EXIT_HARNESS_FAILED
    where = {"folder": kept.run.root, "reproduce": kept.reproduce, **kept.more}
    answer(console, {"exit_code": code, "cut_short": cut_short, "result": result, **where})
    tell_github(
        [] if code == EXIT_VALID else [_alarm(str(budget.broken or INTERRUPTED), kept, code)],
        lambda: summary_of(f"Shrunk: {name_of(folder)}", lines),
        options.system,
    )
    return code


def _alarm(why: str, kept: Kept, code: int) -> Alarm:
    return Alarm(
        title=f"shrink: {name_of(kept.run)}",
        sentence=f"The search ended early: {why.rstrip('.')}.",
        reproduce=kept.reproduce,
        level="warning" if code == EXIT_UNKNOWN else "error",
    )


def _lines(kept: Kept, cut_short: str | None, system: str | None) -> list[str]:
    again = f"{shlex.quote(str(kept.run.root))}{system_option(system)}{installed_options()}"
    continued = to_be_continued(cut_short, again)
    times = "" if kept.times == 1 else f" --times {kept.times}"
    places = {
        **kept.more,
        "report": str(kept.run.report),
        "folder": str(kept.run.root),
        "replay": f"splitbrain replay {again}{times}",
        "reproduce": kept.reproduce,
    }
    places_lines = [f"{f'{what}:':10} {where}" for what, where in places.items()]
    return [*([] if continued is None else [continued]), *kept.story, *places_lines]
