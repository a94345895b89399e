"""The plan of a recorded run, to be run again, and whether it is replayed exactly."""

import shlex
from pathlib import Path

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.names import system_name
from splitbrain.contracts.runtime import SIMULATED
from splitbrain.contracts.system import System
from splitbrain.harness.campaign.replaying.options import ReplayOptions
from splitbrain.harness.folder.manifest import is_changed
from splitbrain.harness.folder.simulation_record import DRAWN
from splitbrain.harness.folder.store import find_run
from splitbrain.harness.folder.tool_version import other_tool
from splitbrain.harness.run.options import TestOptions
from splitbrain.history.json_problems import in_words
from splitbrain.history.plan import Plan, changed_words, decode_plan, reproduce_command
from splitbrain.history.reproduce_line import tool_words
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.schedule_lines import decode_schedule, pin
from splitbrain.nemesis.plan_text import plan_toml
from splitbrain.patched.loading import file_name, installed_patches
from splitbrain.systems.registry import names as system_names
from splitbrain.systems.registry import versions_of


def replay_options(
    run: Path, *, pinned: bool, runs_folder: Path | None = None, runtime: str | None = None
) -> TestOptions:
    """Return the options that repeat a recorded run.

    ``pinned`` hits the recorded nodes instead of resolving each symbolic target anew; the replay
    goes to ``runs_folder``, by default beside the recorded run's test.

    Raises:
        UsageError: there is no run, or its plan or schedule cannot be read.
    """
    folder = find_run(run)
    plan = read_plan(folder)
    whole = "Replay a run whose schedule is whole"
    try:
        lines = folder.schedule.read_bytes().splitlines() if folder.schedule.exists() else []
        schedule, actual = decode_schedule(lines)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{folder.schedule} cannot be read: {_why(error)}", whole) from error
    if len(schedule) != plan.planned_faults:
        count = f"{len(schedule)} of {plan.planned_faults} planned faults"
        raise UsageError(f"{folder.schedule} holds {count}", whole)
    for path in (folder.plan, folder.schedule):
        if is_changed(folder, path.name):
            problem = f"{path} was changed since the run, so it is the plan of another run"
            next_step = "Replay a run that is as it was; a plan of one's own is for test --nemesis"
            raise UsageError(problem, next_step)
    if pinned:
        schedule = pin(schedule, actual)
    experiment = plan.experiment
    if runtime is not None:
        experiment = msgspec.structs.replace(experiment, runtime=runtime)
    return TestOptions(
        experiment=experiment,
        runs_folder=runs_folder or folder.root.parent.parent,
        replay_of=str(folder.root),
        pinned=pinned,
        schedule=schedule,
        plan_file=plan_toml(schedule) if pinned and schedule else plan.plan_file,
    )


def is_exact(folder: RunFolder, options: ReplayOptions) -> bool:
    """Return whether to replay a run exactly; raise UsageError for a bad plan or option."""
    experiment = read_plan(folder).experiment
    is_simulated = experiment.runtime == SIMULATED
    if is_simulated and options.runtime in (None, SIMULATED):
        if options.pinned or options.runs_folder is not None:
            option = "--pinned" if options.pinned else "--runs-folder"
            replay = "an exact replay, which hits the same nodes and makes no run folder"
            raise UsageError(f"{option} does not fit {replay}", "Leave it out")
        return True
    if options.is_debugging:
        raise UsageError(
            "--trace, --from-step and --until-step are for exact replays of simulated runs",
            "Leave them out, or name a simulated run",
        )
    if is_simulated and experiment.nemesis == DRAWN:
        raise UsageError(
            f"{folder.root} is one world of a sweep, and its faults strike at moments that "
            "nothing but a simulation knows",
            "Replay it without --runtime",
        )
    return False


def check_code(folder: RunFolder, command: str, system: str | None = None) -> list[str]:
    """Check that this command has the run's system and patches; return the patches it has besides.

    ``command`` takes the run folder, such as ``replay``; ``system`` is the name of the system that
    it was given.

    Raises:
        UsageError: a patch of the run lacks, or its system, or the command was given another; or no
            plan made the run.
    """
    try:
        plan = decode_plan(folder.plan.read_bytes())
    except (OSError, ValueError, RecursionError):
        # Without a plan there is nothing to run; its later readers say so.
        return []
    _refuse_driven(folder, plan)
    own_system, file = plan.experiment.system, plan.system_file
    if system not in (None, own_system):
        raise UsageError(
            f"{folder.root} is a run of the system {own_system!r}, not of {system!r}",
            "Leave --system out" if file is None else f"Give --system {shlex.quote(file)}",
        )
    # A run folder never runs a file unasked.
    if file is not None and system_name(own_system) not in system_names():
        words = shlex.join([str(folder.root), "--system", file])
        raise UsageError(
            f"{folder.root} is a run of the system {own_system!r} of the file {file}, which this "
            "command does not have",
            f"Add its file: splitbrain {command} {words}",
        )
    patches = plan.patches
    installed = {patch.text: patch for patch in installed_patches()}
    for patch in patches:
        if not patch.is_planted and patch.text not in installed:
            raise UsageError(
                f"{folder.root} was run with the patch {patch.name} (SHA-256 {patch.digest[:16]}), "
                "which this command does not have",
                f"Add --patch FILE; the field patches of {folder.plan} holds its text",
            )
    texts = [patch.text for patch in patches]
    return [file_name(patch) for text, patch in installed.items() if text not in texts]


def changed_versions(plan: Plan, system: System) -> list[str]:
    """Return a line each where splitbrain, or what is under test, is not what it was in the run.

    ``system`` has the options of the run.
    """
    lines = other_tool(tool_words(plan.tool_version, plan.tool_commit))
    changed = changed_words(plan.system_versions, versions_of(system))
    return lines if changed is None else [*lines, changed]


def read_plan(folder: RunFolder) -> Plan:
    """Read the plan of a run; raise UsageError if it cannot be read."""
    try:
        return decode_plan(folder.plan.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        problem = f"{folder.plan} cannot be read: {_why(error)}"
        raise UsageError(problem, "Replay a run made by this version") from error


def _refuse_driven(folder: RunFolder, plan: Plan) -> None:
    if plan.driven_by is not None:
        raise UsageError(
            f"{folder.root} was made by the steps of the test {plan.driven_by}, which stand in no "
            "plan",
            f"Run the test again: {reproduce_command(plan)}",
        )


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return in_words(error)
