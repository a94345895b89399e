"""Runs the scenario of a run folder again, and says whether it came to the same.

Exact: same trace hash, same violation in the same step, on any machine and any Python that this
version supports. Anything else is a failure of the harness, or another version of the tool, and is
never passed off as a verdict. Makes no run folder. Source: design, section 2; issue 5.
"""

import platform
from typing import Any

from rich.console import Console
from rich.text import Text

from contracts.scenario import Scenario
from contracts.simulation import SimulatedSystem
from harness.options import check_bugs
from harness.plain_text import printable
from harness.results import EXIT_HARNESS_FAILED, EXIT_INVALID, EXIT_UNKNOWN, EXIT_VALID
from harness.simulation.judging import judged, sentence_of, undecided
from harness.simulation.outcome import JudgedOutcome, SimulationOutcome
from harness.simulation.record import SimulationRecord
from harness.simulation.replay_options import ReplayOptions
from harness.simulation.scenario_file import read_scenario, read_simulation
from harness.simulation.story_lines import heading, story_lines
from harness.simulation.trial import simulated_system
from harness.tool_version import tool_commit, tool_version
from history.run_folder import RunFolder
from runtimes.simulated.world import SimulatedWorld


class _Watched:
    """Notes in which step each record of the story was made."""

    def __init__(self) -> None:
        self.steps: list[int] = []

    def __call__(self, world: SimulatedWorld) -> None:
        """Called after every step."""
        missing = len(world.story) - len(self.steps)
        if missing:
            self.steps += [world.step] * missing

    def story(self, outcome: SimulationOutcome) -> list[tuple[int, Any]]:
        """Each record with its step; what was told after the last step belongs to that."""
        late = len(outcome.story) - len(self.steps)
        return list(zip([*self.steps, *[outcome.steps] * late], outcome.story, strict=True))


def replay_scenario(folder: RunFolder, console: Console, options: ReplayOptions) -> int:
    """Run the scenario of a folder again, and compare; returns the exit code.

    Raises:
        UsageError: the folder holds no scenario that this version can run.
    """
    options.check()
    scenario, record = read_scenario(folder.scenario), read_simulation(folder)
    system = _system_of(scenario)
    codes: list[int] = []
    for _ in range(options.times):
        outcome = _run(scenario, system, options, console)
        if options.until_step is not None and outcome.steps < record.steps:
            _say(console, _stopped(outcome))
            return EXIT_UNKNOWN if outcome.violation is None else EXIT_INVALID
        sentence, code = compare(record, judged(outcome))
        _say(console, sentence)
        codes.append(code)
    if len(codes) > 1:
        same = sum(code != EXIT_HARNESS_FAILED for code in codes)
        _say(console, f"{same} of {len(codes)} replays had the same trace.")
    return EXIT_HARNESS_FAILED if EXIT_HARNESS_FAILED in codes else codes[0]


def compare(record: SimulationRecord, again: JudgedOutcome) -> tuple[str, int]:
    """What a replay came to beside what the run came to: a sentence and the exit code."""
    outcome = again.outcome
    same_end = (outcome.violation, outcome.steps) == (record.violation, record.steps)
    if outcome.trace_hash != record.trace_hash or not same_end:
        return f"{_differently(record, again)} {_versions(record)}", EXIT_HARNESS_FAILED
    trace = f"same trace ({record.trace_hash})"
    before = record.failed_by
    if again.failed_by and before is not None and again.failed_by != before:
        # The checkers are part of the tool: another version may judge one history otherwise.
        told = f"it was found by {', '.join(before) or 'nothing'}"
        now = f"and now by {', '.join(again.failed_by)}"
        return f"{trace}, but {told}, {now}. {_versions(record)}", EXIT_HARNESS_FAILED
    if again.failed_by:
        found = ", ".join(again.failed_by)
        violation = outcome.violation
        where = "" if violation is None else f" in step {violation.step:,}"
        return f"failed again{where}, {trace}: {found}: {sentence_of(again)}", EXIT_INVALID
    if record.failed_by:
        # The checkers are part of the tool: another version may judge one history otherwise.
        return (
            f"{trace}, but {', '.join(record.failed_by)} found nothing now. {_versions(record)}",
            EXIT_HARNESS_FAILED,
        )
    unknown = undecided(again)
    if unknown:
        return f"undecided by {', '.join(unknown)}, {trace}.", EXIT_UNKNOWN
    return f"nothing failed in {outcome.steps:,} steps, {trace}.", EXIT_VALID


def _run(
    scenario: Scenario, system: SimulatedSystem, options: ReplayOptions, console: Console
) -> SimulationOutcome:
    from harness.simulation.simulate import simulate

    if not options.trace:
        return simulate(scenario, system, stop_at_step=options.until_step)
    watched = _Watched()
    outcome = simulate(
        scenario, system, is_recording=True, watch=watched, stop_at_step=options.until_step
    )
    first = options.from_step or 0
    story = [(step, told) for step, told in watched.story(outcome) if step >= first]
    _print_lines(console, [heading(), *story_lines(story)])
    return outcome


def _system_of(scenario: Scenario) -> SimulatedSystem:
    from systems.registry import system

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
    """Whether another version of the tool made the run."""
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


def _print_lines(console: Console, lines: list[str]) -> None:
    """As they are: a trace is long, and is read by programs too."""
    try:
        for line in lines:
            console.file.write(line + "\n")
        console.file.flush()
    except BrokenPipeError:
        console.on_broken_pipe()


def _say(console: Console, sentence: str) -> None:
    console.print(Text(printable(sentence)), soft_wrap=True)
