"""Exact replay of a run folder's scenario, compared with the record.

Exact: same trace hash, same violation in the same step, on any machine and any Python that this
version supports. A difference is a failure of the harness or due to another version of the tool,
and never passed off as a verdict. Makes no run folder. Source: design, section 2; issue 5.
"""

import platform
from pathlib import Path
from typing import Any

from rich.console import Console

from splitbrain.contracts.scenario import Scenario
from splitbrain.contracts.simulation import SimulatedSystem
from splitbrain.harness.campaign.replaying.options import ReplayOptions
from splitbrain.harness.campaign.replaying.verdicts import exact_line
from splitbrain.harness.campaign.sweep.trial import simulated_system
from splitbrain.harness.console.console_lines import say, write_lines
from splitbrain.harness.console.interrupts import Interrupts
from splitbrain.harness.folder.results import (
    EXIT_HARNESS_FAILED,
    EXIT_INVALID,
    EXIT_UNKNOWN,
    EXIT_VALID,
)
from splitbrain.harness.folder.scenario_file import read_named_scenario, read_recorded, said_of
from splitbrain.harness.folder.simulation_outcome import JudgedOutcome, SimulationOutcome
from splitbrain.harness.folder.simulation_record import SimulationRecord, record_of
from splitbrain.harness.folder.tool_version import tool_commit, tool_version
from splitbrain.harness.judge.simulated_outcomes import judged
from splitbrain.harness.report.story_lines import heading, story_lines
from splitbrain.harness.run.options import check_bugs
from splitbrain.history.run_folder import RunFolder
from splitbrain.simulation.world.world import SimulatedWorld


class _Watched:
    """Recorder of the step in which each record of the story was made."""

    def __init__(self) -> None:
        self.steps: list[int] = []

    def __call__(self, world: SimulatedWorld) -> None:
        """Note the step of new records; called after every step."""
        missing = len(world.story) - len(self.steps)
        if missing:
            self.steps += [world.step] * missing

    def story(self, outcome: SimulationOutcome) -> list[tuple[int, Any]]:
        """Return each record with its step; records after the last step belong to that."""
        late = len(outcome.story) - len(self.steps)
        return list(zip([*self.steps, *[outcome.steps] * late], outcome.story, strict=True))


def replay_scenario(
    folder: RunFolder, console: Console, options: ReplayOptions, *, is_changed: bool = False
) -> int:
    """Run the scenario of a folder again and compare; return the exit code.

    Nodes that are changed (``is_changed``) make another world of it, which is compared with
    nothing.

    Raises:
        UsageError: the folder holds no scenario that this version can run.
    """
    options.check_steps()
    scenario, record = read_recorded(folder)
    with said_of(folder.scenario):
        return _replay(scenario, None if is_changed else record, console, options)


def replay_file(path: Path, console: Console, options: ReplayOptions) -> int:
    """Run a scenario without a run folder and report; return the exit code.

    Further runs are compared with the first one.

    Raises:
        UsageError: the file holds no scenario that this version can run.
    """
    options.check_steps()
    scenario = read_named_scenario(path)
    with said_of(path):
        return _replay(scenario, None, console, options)


def _replay(
    scenario: Scenario, record: SimulationRecord | None, console: Console, options: ReplayOptions
) -> int:
    """Run it as often as asked; report the runs before an interruption too."""
    system = _system_of(scenario)
    codes: list[int] = []
    with Interrupts(lambda sentence: say(console, sentence)):
        try:
            for _ in range(options.times):
                outcome = _run(scenario, system, options, console)
                if _is_stopped(outcome, record, options):
                    say(console, _stopped(outcome))
                    return EXIT_UNKNOWN if outcome.violation is None else EXIT_INVALID
                again = judged(outcome)
                sentence, code = came_to(again) if record is None else compare(record, again)
                say(console, sentence)
                codes.append(code)
                # Without a recorded run the first one is the reference.
                record = record or record_of(outcome, again)
        except KeyboardInterrupt:
            say(console, f"interrupted: {exact_line(codes, options.times)}")
            # Ctrl-C does not undo a violation, or a replay that differed.
            seen = [code for code in (EXIT_HARNESS_FAILED, EXIT_INVALID) if code in codes]
            return seen[0] if seen else EXIT_UNKNOWN
    if len(codes) > 1:
        say(console, exact_line(codes, options.times))
    return EXIT_HARNESS_FAILED if EXIT_HARNESS_FAILED in codes else codes[0]


def _is_stopped(
    outcome: SimulationOutcome, record: SimulationRecord | None, options: ReplayOptions
) -> bool:
    if options.until_step is None or outcome.steps < options.until_step:
        return False
    if record is None:
        return outcome.violation is None
    return outcome.steps < record.steps


def compare(record: SimulationRecord, again: JudgedOutcome) -> tuple[str, int]:
    """Compare a replay with the record; return a sentence and the exit code."""
    outcome = again.outcome
    same_end = (outcome.violation, outcome.steps) == (record.violation, record.steps)
    if outcome.trace_hash != record.trace_hash or not same_end:
        return f"{_differently(record, again)} {_versions(record)}", EXIT_HARNESS_FAILED
    trace = f"same trace ({record.trace_hash})"
    before = record.failed_by
    if again.failed_by and before is not None and again.failed_by != before:
        # The checkers are part of the tool: another version may judge one history otherwise.
        then = f"it was found by {', '.join(before) or 'nothing'}"
        now = f"and now by {', '.join(again.failed_by)}"
        return f"{trace}, but {then}, {now}. {_versions(record)}", EXIT_HARNESS_FAILED
    if again.failed_by:
        return f"failed again{_failure(again, trace)}", EXIT_INVALID
    if record.failed_by:
        return (
            f"{trace}, but {', '.join(record.failed_by)} found nothing now. {_versions(record)}",
            EXIT_HARNESS_FAILED,
        )
    return _held(again, trace)


def came_to(judged_outcome: JudgedOutcome) -> tuple[str, int]:
    """Return sentence and exit code of a world that was never run before."""
    trace = f"trace {judged_outcome.outcome.trace_hash}"
    if judged_outcome.failed_by:
        return f"failed{_failure(judged_outcome, trace)}", EXIT_INVALID
    return _held(judged_outcome, trace)


def _failure(judged_outcome: JudgedOutcome, trace: str) -> str:
    violation = judged_outcome.outcome.violation
    where = "" if violation is None else f" in step {violation.step:,}"
    found = ", ".join(judged_outcome.failed_by)
    return f"{where}, {trace}: {found}: {judged_outcome.sentence}"


def _held(judged_outcome: JudgedOutcome, trace: str) -> tuple[str, int]:
    unknown = judged_outcome.undecided
    if unknown:
        return f"undecided by {', '.join(unknown)}, {trace}.", EXIT_UNKNOWN
    return f"nothing failed in {judged_outcome.outcome.steps:,} steps, {trace}.", EXIT_VALID


def _run(
    scenario: Scenario, system: SimulatedSystem, options: ReplayOptions, console: Console
) -> SimulationOutcome:
    from splitbrain.harness.run.world.simulate import simulate

    if not options.trace:
        return simulate(scenario, system, stop_at_step=options.until_step)
    watched = _Watched()
    outcome = simulate(
        scenario, system, is_recording=True, watch=watched, stop_at_step=options.until_step
    )
    first = options.from_step or 0
    story = [(step, record) for step, record in watched.story(outcome) if step >= first]
    write_lines(console, [heading(), *story_lines(story)])
    return outcome


def _system_of(scenario: Scenario) -> SimulatedSystem:
    from splitbrain.systems.registry import system

    adapter = system(scenario.system)
    check_bugs(scenario.bugs, adapter)
    return simulated_system(scenario.system)


def _stopped(outcome: SimulationOutcome) -> str:
    at = f"stopped after step {outcome.steps:,}, {outcome.virtual_us / 1000:,.3f} ms into the run"
    return f"{at}; nothing was judged."


def _differently(record: SimulationRecord, again: JudgedOutcome) -> str:
    outcome = again.outcome
    was = _end(record.violation is not None, record.steps, record.trace_hash)
    now = _end(outcome.violation is not None, outcome.steps, outcome.trace_hash)
    found = f" ({', '.join(again.failed_by)})" if again.failed_by else ""
    return f"came out differently: it {was}, and now {now}{found}."


def _end(violated: bool, steps: int, trace_hash: str) -> str:
    how = "failed in step" if violated else "ended after step"
    return f"{how} {steps:,} with trace {trace_hash}"


def _versions(record: SimulationRecord) -> str:
    made_by = _version(record.tool_version, record.tool_commit)
    this = _version(tool_version(), tool_commit())
    if made_by != this:
        return f"The run was made by splitbrain {made_by}, this is {this}."
    if this.endswith("-dirty"):
        return f"Both are splitbrain {this}: compare what was changed in the work tree."
    return (
        f"Both are splitbrain {this} (Python {record.python} then, {platform.python_version()} "
        "now): this is a defect of splitbrain; please report it with the run folder."
    )


def _version(version: str, commit: str | None) -> str:
    return version if commit is None else f"{version} of commit {commit}"
