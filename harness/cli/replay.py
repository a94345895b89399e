"""``splitbrain replay``: a world is replayed exactly, any other run by its plan.

In containers a seed replays the *schedule* and the clients' operations, not the kernel's timing, so
a failure may not come back: said is in how many of n replays it did.
"""

from rich.console import Console

from splitbrain.contracts.errors import UsageError
from splitbrain.harness.campaign.replaying.options import ReplayOptions
from splitbrain.harness.campaign.replaying.recorded import added_patches, is_exact, replay_options
from splitbrain.harness.campaign.replaying.verdicts import (
    ReplayVerdict,
    recorded_verdict,
    replay_lines,
)
from splitbrain.harness.cli import commands
from splitbrain.harness.console.console_lines import say
from splitbrain.harness.folder.results import worst
from splitbrain.harness.folder.store import find_run
from splitbrain.history.run_folder import RunFolder


def replay(options: ReplayOptions, console: Console) -> int:
    """Run a recorded plan or world again, and say how often it came to the same.

    Returns:
        The worst exit code: by a plan a violation, then a failed harness, then unknown, then valid;
        of an exact replay first of all that it came out differently, as a failed harness.

    Raises:
        UsageError: there is no such run or world, or an option does not fit it.
    """
    from splitbrain.harness.campaign.replaying.exact import replay_file, replay_scenario

    options.check()
    if options.scenario is not None:
        return replay_file(options.scenario, console, options)
    if options.run is None:
        raise UsageError(
            "the RUN is missing", "Name a run folder, such as runs/latest, or a --scenario FILE"
        )
    folder = find_run(options.run)
    if added := added_patches(folder):
        say(console, f"with {', '.join(added)}, which the run did not have")
    if is_exact(folder, options):
        return replay_scenario(folder, console, options, is_changed=bool(added))
    return _by_plan(folder, console, options)


def _by_plan(folder: RunFolder, console: Console, options: ReplayOptions) -> int:
    test = replay_options(
        folder.root, pinned=options.pinned, runs_folder=options.runs_folder, runtime=options.runtime
    )
    recorded = recorded_verdict(folder)
    codes: list[int] = []
    verdicts: list[ReplayVerdict] = []
    for _ in range(options.times):
        judged = commands.run_once(test, console, analyze=options.analyze)
        codes.append(judged.exit_code)
        verdicts.append(judged.came_to)
        if judged.interrupted:
            break
    for line in replay_lines(recorded, verdicts, options.times):
        say(console, line)
    return worst(codes)
