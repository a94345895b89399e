"""Exact replay of a run folder's scenario, compared with the record.

Exact: same trace hash, same violation in the same step, on any machine and any Python that this
version supports. A difference is a failure of the harness or due to another version of the tool,
and never passed off as a verdict. Makes no run folder. Source: design, section 2; issue 5.
"""

import platform
from typing import Any

from rich.console import Console

from splitbrain.contracts.scenario import Scenario
from splitbrain.contracts.simulation import SimulatedSystem
from splitbrain.harness.campaign.replaying.options import ReplayOptions
from splitbrain.harness.campaign.replaying.verdicts import exact_line
from splitbrain.harness.campaign.sweep.trial import simulated_system
from splitbrain.harness.console.console_lines import say, write_lines
from splitbrain.harness.console.interrupts import Interrupts
from splitbrain.harness.console.standard_streams import answer
from splitbrain.harness.folder.results import (
    EXIT_HARNESS_FAILED,
    EXIT_INVALID,
    EXIT_UNKNOWN,
    EXIT_VALID,
)
from splitbrain.harness.folder.scenario_file import read_named_scenario, read_recorded, said_of
from splitbrain.harness.folder.simulation_outcome import JudgedOutcome, SimulationOutcome
from splitbrain.harness.folder.simulation_record import SimulationRecord, made_by, record_of
from splitbrain.harness.folder.tool_version import other_tool, this_tool
from splitbrain.harness.judge.simulated_outcomes import judged
from splitbrain.harness.report.alarms import Alarm
from splitbrain.harness.report.github import summary_of, tell_github
from splitbrain.harness.report.story_lines import heading, story_lines
from splitbrain.harness.run.options import check_bugs
from splitbrain.history.reproduce_line import is_other
from splitbrain.history.run_folder import RunFolder
from splitbrain.simulation.world.world import SimulatedWorld


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
    for line in other_tool(made_by(record)):
        say(console, line)
    with said_of(folder.scenario):
        return _replay(scenario, None if is_changed else record, console, options)


def replay_file(word: str, console: Console, options: ReplayOptions) -> int:
    """Run a scenario without a run folder and report; return the exit code.

    Further runs are compared with the first one.

    Raises:
        UsageError: the file holds no scenario that this version can run.
    """
    options.check_steps()
    named = read_named_scenario(word)
    for line in other_tool(named.made_by):
        say(console, line)
    with said_of(named.source):
        return _replay(named.scenario, None, console, options)


def _replay(
    scenario: Scenario, record: SimulationRecord | None, console: Console, options: ReplayOptions
) -> int:
    """Run it ``options.times``; report the runs before an interruption too."""
    from splitbrain.systems.registry import system

    check_bugs(scenario.bugs, system(scenario.system))
    simulation = simulated_system(scenario.system)
    codes: list[int] = []
    # Exit codes by sentence: replays that are alike are one thing to tell.
    told: dict[str, int] = {}
    replays: list[dict[str, Any]] = []
    with Interrupts(lambda sentence: say(console, sentence)):
        try:
            for _ in range(options.times):
                outcome = _run(scenario, simulation, options, console)
                if _is_stopped(outcome, record, options):
                    ms = f"{outcome.virtual_us / 1000:,.3f} ms"
                    at = f"stopped after step {outcome.steps:,}, {ms} into the run"
                    say(console, f"{at}; nothing was judged.")
                    return EXIT_UNKNOWN if outcome.violation is None else EXIT_INVALID
                again = judged(outcome)
                sentence, code = first_outcome(again) if record is None else compare(record, again)
                say(console, sentence)
                codes.append(code)
                replays.append(_as_data(again, sentence, code))
                told[sentence] = code
                # Without a recorded run the first one is the reference.
                record = record or record_of(outcome, again)
        except KeyboardInterrupt:
            say(console, f"interrupted: {exact_line(codes, options.times)}")
            # Ctrl-C does not undo a violation, or a replay that differed.
            seen = [code for code in (EXIT_HARNESS_FAILED, EXIT_INVALID) if code in codes]
            return seen[0] if seen else EXIT_UNKNOWN
    if len(codes) > 1:
        say(console, exact_line(codes, options.times))
    code = EXIT_HARNESS_FAILED if EXIT_HARNESS_FAILED in codes else codes[0]
    answer(console, {"exit_code": code, "replays": replays})
    tell_github(
        [_alarm(sentence, made) for sentence, made in told.items() if made != EXIT_VALID],
        lambda: summary_of(f"Replay of a world of {scenario.system}", told),
        scenario.system,
    )
    return code


def _alarm(sentence: str, code: int) -> Alarm:
    level = "warning" if code == EXIT_UNKNOWN else "error"
    return Alarm(title="exact replay", sentence=sentence, level=level)


def _as_data(again: JudgedOutcome, sentence: str, code: int) -> dict[str, Any]:
    outcome = again.outcome
    return {
        "exit_code": code,
        "sentence": sentence,
        "failed_by": again.failed_by,
        "trace_hash": outcome.trace_hash,
        "steps": outcome.steps,
        "violation": outcome.violation,
    }


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
    # The checkers are part of the tool: another version may judge one history otherwise.
    if again.failed_by and before is not None and again.failed_by != before:
        then = f"it was found by {', '.join(before) or 'nothing'}"
        now = f"and now by {', '.join(again.failed_by)}"
        return f"{trace}, but {then}, {now}. {_versions(record)}", EXIT_HARNESS_FAILED
    if again.failed_by:
        return f"failed again{_failure(again, trace)}", EXIT_INVALID
    if before:
        now = f"{', '.join(before)} found nothing now"
        return f"{trace}, but {now}. {_versions(record)}", EXIT_HARNESS_FAILED
    return _held(again, trace)


def first_outcome(made: JudgedOutcome) -> tuple[str, int]:
    """Return sentence and exit code of a world that was never run before."""
    trace = f"trace {made.outcome.trace_hash}"
    if made.failed_by:
        return f"failed{_failure(made, trace)}", EXIT_INVALID
    return _held(made, trace)


def _failure(made: JudgedOutcome, trace: str) -> str:
    violation = made.outcome.violation
    where = "" if violation is None else f" in step {violation.step:,}"
    return f"{where}, {trace}: {', '.join(made.failed_by)}: {made.sentence}"


def _held(made: JudgedOutcome, trace: str) -> tuple[str, int]:
    if made.undecided:
        return f"undecided by {', '.join(made.undecided)}, {trace}.", EXIT_UNKNOWN
    return f"nothing failed in {made.outcome.steps:,} steps, {trace}.", EXIT_VALID


def _run(
    scenario: Scenario, system: SimulatedSystem, options: ReplayOptions, console: Console
) -> SimulationOutcome:
    from splitbrain.harness.run.world.simulate import simulate

    if not options.trace:
        return simulate(scenario, system, stop_at_step=options.until_step)
    # Step of each record of the story.
    steps: list[int] = []

    def watch(world: SimulatedWorld) -> None:
        steps.extend([world.step] * (len(world.story) - len(steps)))

    outcome = simulate(
        scenario, system, is_recording=True, watch=watch, stop_at_step=options.until_step
    )
    # Records after the last step belong to that.
    steps += [outcome.steps] * (len(outcome.story) - len(steps))
    first = options.from_step or 0
    records: list[Any] = list(outcome.story)
    story = [(step, each) for step, each in zip(steps, records, strict=True) if step >= first]
    write_lines(console, [heading(), *story_lines(story)])
    return outcome


def _differently(record: SimulationRecord, again: JudgedOutcome) -> str:
    outcome = again.outcome
    was = _end(record.violation is not None, record.steps, record.trace_hash)
    now = _end(outcome.violation is not None, outcome.steps, outcome.trace_hash)
    finders = f" ({', '.join(again.failed_by)})" if again.failed_by else ""
    return f"came out differently: it {was}, and now {now}{finders}."


def _end(violated: bool, steps: int, trace_hash: str) -> str:
    how = "failed in step" if violated else "ended after step"
    return f"{how} {steps:,} with trace {trace_hash}"


def _versions(record: SimulationRecord) -> str:
    made, this = made_by(record), this_tool()
    if is_other(made, this):
        return "Another version made the run, so nothing is proven by that."
    if this.endswith("-dirty"):
        return f"Both are {this}: compare what was changed in the work tree."
    return (
        f"Both are {this} (Python {record.python} then, {platform.python_version()} "
        "now): this is a defect of splitbrain; please report it with the run folder."
    )
