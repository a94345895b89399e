"""The commands ``test``, ``check``, ``analyze`` and ``replay``.

A run leaves a folder, judging reads it, and one left by a dead run is judged in the same way. A
world is replayed exactly, any other run by its plan: in containers a seed replays the *schedule*
and the clients' operations, not the kernel's timing, so a failure may not come back.
"""

import shlex
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from splitbrain.contracts.errors import UNREADABLE, HarnessError, UsageError
from splitbrain.contracts.runtime import SIMULATED
from splitbrain.contracts.system import System
from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.cleaning import salvage
from splitbrain.harness.campaign.replaying.options import ReplayOptions
from splitbrain.harness.campaign.replaying.recorded import (
    changed_versions,
    check_code,
    is_exact,
    read_plan,
    replay_options,
)
from splitbrain.harness.campaign.replaying.verdicts import (
    INTERRUPTED,
    ReplayVerdict,
    recorded_verdict,
    replay_answer,
    replay_lines,
    verdict_of,
)
from splitbrain.harness.cli.session import Session, judging_session
from splitbrain.harness.console.console_lines import say
from splitbrain.harness.console.pace import pace_words
from splitbrain.harness.console.standard_streams import answer
from splitbrain.harness.console.waiting import During, Waiting, unseen
from splitbrain.harness.folder.results import (
    EXIT_HARNESS_FAILED,
    EXIT_UNKNOWN,
    EXIT_VALID,
    Results,
    keep_former,
    read,
    worst,
)
from splitbrain.harness.folder.store import drop_data, find_run, is_alive
from splitbrain.harness.judge.analysis_process import kill_all
from splitbrain.harness.pool.spark_service import SparkService, shared_session
from splitbrain.harness.report import publishing
from splitbrain.harness.report.alarms import alarms_of
from splitbrain.harness.report.github import summary_of, tell_github
from splitbrain.harness.report.summary import show, show_headline, to_markdown
from splitbrain.harness.run.options import TestOptions, plan_test, prepare
from splitbrain.harness.run.runner import RunOutcome, run_test
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.spark_extra import COMMAND, has_spark, require_spark


class Judged(msgspec.Struct, frozen=True):
    """Outcome of one run."""

    exit_code: int
    #: The user ended it early.
    interrupted: bool = False
    #: Verdict by which a replay is compared.
    verdict: ReplayVerdict = INTERRUPTED
    #: None: it was not judged.
    results: Results | None = None


def run_once(options: TestOptions, console: Console, *, analyze: bool | None) -> Judged:
    """Run a test, judge it and print the verdict.

    ``analyze`` runs the Spark analysis; None: unless the run is a simulated one, whose latencies
    and rates mean nothing.

    Raises:
        HarnessError: the run ended before a client had worked, so that there is nothing to judge.
    """
    from splitbrain.systems import registry as systems

    system = systems.system(options.experiment.system)
    is_simulated = options.experiment.runtime == SIMULATED
    with_spark = _with_spark(analyze, is_simulated=is_simulated)
    with (
        judging_session(console, kill_all, shows=True) as session,
        shared_session() if with_spark else nullcontext() as service,
    ):
        try:
            run = ready_run(options, system, console, session, service)
        except KeyboardInterrupt:
            session.say(
                "interrupted: a simulated run leaves nothing until it is over."
                if is_simulated
                else "interrupted before the run began: nothing was started."
            )
            return Judged(EXIT_UNKNOWN, interrupted=True)
        with session.judging():
            outcome = run()
            if service is not None:
                # Also of a run that was interrupted: what it recorded is analysed.
                service.hurry()
            if outcome.hurried:
                session.say(
                    "interrupted twice, so nothing was judged; "
                    f"`splitbrain check {outcome.folder.root}` judges what was recorded."
                )
                return Judged(EXIT_HARNESS_FAILED, interrupted=True)
            if analyze is None and not with_spark:
                session.say(_left_out(outcome.folder))
            results = judge_outcome(outcome, session, analyze=with_spark)
    if results.exit_code == EXIT_VALID and not options.keep_data:
        drop_data(outcome.folder)
    return Judged(results.exit_code, results.interrupted, verdict_of(results), results)


def run_seeds(options: TestOptions, seeds: range, console: Console, *, analyze: bool | None) -> int:
    """Run a test with each of some seeds, one after the other; return the worst exit code.

    An interrupted run is the last one. As JSON the answer has the results of each.

    Raises:
        HarnessError: as ``run_once``; what the runs before it came to has been told by then.
    """
    if len(seeds) == 1:
        only = run_once(options, console, analyze=analyze)
        answer(console, {"exit_code": only.exit_code, "runs": _results([only])})
        _tell_github(_results([only]), options.experiment.system, options.experiment.nemesis)
        return only.exit_code
    judged: dict[int, Judged] = {}
    try:
        with shared_session():
            for seed in seeds:
                say(console, f"seed {seed}, {len(judged) + 1} of {len(seeds):,}", "bold")
                experiment = msgspec.structs.replace(options.experiment, seed=seed)
                one = msgspec.structs.replace(options, experiment=experiment)
                judged[seed] = run_once(one, console, analyze=analyze)
                if judged[seed].interrupted:
                    break
    finally:
        if judged:
            say(console, _seeds_line(judged, len(seeds)), "bold")
    code = worst([each.exit_code for each in judged.values()])
    answer(console, {"exit_code": code, "runs": _results(judged.values())})
    _tell_github(_results(judged.values()), options.experiment.system, options.experiment.nemesis)
    return code


def _tell_github(made: Sequence[Results], *named: str) -> None:
    alarms = [alarm for results in made for alarm in alarms_of(results)]
    tell_github(alarms, lambda: "\n\n".join(map(to_markdown, made)), *named)


def _results(judged: Iterable[Judged]) -> list[Results]:
    return [each.results for each in judged if each.results is not None]


def _seeds_line(judged: Mapping[int, Judged], wanted: int) -> str:
    """Return how many seeds came to each verdict, and which of them are not valid."""
    by_verdict: dict[str, list[str]] = {}
    for seed, each in judged.items():
        by_verdict.setdefault(each.verdict.text, []).append(str(seed))
    left = wanted - len(judged)
    parts = [
        f"{len(found):,} {verdict}" + ("" if verdict == "valid" else f": {', '.join(found)}")
        for verdict, found in sorted(by_verdict.items())
    ]
    parts += [f"{left:,} not run"] if left else []
    return f"{counted(wanted, 'seed')}: {'; '.join(parts)}."


def ready_run(
    options: TestOptions,
    system: System,
    console: Console,
    session: Session,
    analyst: SparkService | None = None,
) -> Callable[[], RunOutcome]:
    """Prepare a run; what it gives back carries it out, or hands over what was carried out.

    A simulated run is over by then: it takes seconds, and until its end there is nothing to keep.
    """
    from splitbrain.runtimes import registry as runtimes

    if options.experiment.runtime == SIMULATED:
        from splitbrain.harness.campaign.sweep.planned import run_planned

        outcome = run_planned(plan_test(options, system), console)
        return lambda: outcome
    test = prepare(options, system, lambda: runtimes.runtime(options.experiment.runtime))
    test.runtime.prepare(test.system.images())
    return lambda: run_test(test, console, interrupts=session.interrupts, analyst=analyst)


def judge_outcome(outcome: RunOutcome, session: Session, *, analyze: bool) -> Results:
    """Judge what a run left, and say so meanwhile; its failure, if any, counts as the harness's.

    Raises:
        HarnessError: the failure itself, where clients never worked; the folder says so too.
    """
    problems = () if outcome.failure is None else (str(outcome.failure),)
    root = outcome.folder.root
    if outcome.failure is not None and not outcome.loaded:
        # There is one thing to tell, and a page of tables around it would hide it.
        publishing.judge_and_publish(
            root, analyze=False, harness_problems=problems, stop=session.stop
        )
        raise outcome.failure
    # A user who has pressed Ctrl-C does not want to wait for tables.
    with_spark = analyze and not outcome.interrupted
    during = Waiting(session.console).during
    if analyze and not with_spark:
        session.say(
            "The Spark analysis was left out after the interruption; "
            f"`splitbrain analyze {root}` makes it."
        )
    return _judge(root, session, during, analyze=with_spark, harness_problems=problems)


def check(path: Path, console: Console, *, as_json: bool, analyze: bool | None) -> int:
    """Judge a run folder and print the verdict; returns the exit code.

    Without a word in ``analyze`` the Spark analysis is run, but not of a simulated run.
    """
    # Nothing but the results may stand beside JSON.
    during = unseen if as_json else Waiting(console).during
    with judging_session(console, kill_all, shows=not as_json) as session, session.judging():
        results = _check_run(path, session, during, quiet=as_json, analyze=analyze)
    if as_json:
        show(results, console, as_json=True)
    _tell_github([results], results.system)
    return results.exit_code


def _check_run(
    path: Path, session: Session, during: During, *, quiet: bool, analyze: bool | None
) -> Results:
    folder = find_run(path)
    # Every simulated run has one, and no other.
    is_simulated = folder.simulation.exists()
    with_spark = _with_spark(analyze, is_simulated=is_simulated)
    if not with_spark and analyze is None and not quiet and not folder.analysis.exists():
        session.say(_left_out(folder))
    former: Path | None = None
    try:
        # Into the folder of a run that still goes on nobody writes.
        former = None if is_alive(folder) else keep_former(folder)
    except HarnessError as error:
        session.say(f"The former results are not kept: {error}")
    if former is not None and not quiet:
        session.say(f"judging {folder.root} again; its former results are kept in {former.name}")
    try:
        salvage(folder)
    except HarnessError as error:
        # The content of the folder can be judged all the same.
        session.say(f"What the nodes left was not fetched: {error}")
    results = _judge(folder.root, session, during, analyze=with_spark)
    if former is not None and not quiet:
        _tell_change(former, results, session)
    return results


def _tell_change(former: Path, results: Results, session: Session) -> None:
    """Say it where a run is judged otherwise than before; the verdict stays the last line."""
    try:
        before = read(former).headline
    except (OSError, *UNREADABLE):
        return
    if before != results.headline:
        session.say(f"the former verdict was {before}, see {former.name}")
        show_headline(results, session.console)


def _judge(root: Path, session: Session, during: During, **options: Any) -> Results:
    results = publishing.judge_and_publish(
        root, during=during, stop=session.stop, on_verdict=session.note_verdict, **options
    )
    session.conclude(results)
    return results


def _with_spark(analyze: bool | None, *, is_simulated: bool) -> bool:
    """Whether Spark analyses a run; raises UsageError where it is asked for and not installed."""
    if analyze:
        require_spark("--analyze")
    return not is_simulated and has_spark() if analyze is None else analyze


def _left_out(folder: RunFolder) -> str:
    """Why nothing is analysed, and how it is all the same."""
    if not has_spark():
        return (
            "no analysis (latencies, availability, commits that were lost by node and fault): "
            f"it needs Spark, and {COMMAND} brings it"
        )
    return (
        "no Spark analysis: simulated latencies and rates mean nothing; "
        f"`splitbrain analyze {shlex.quote(str(folder.root))}` makes it"
    )


def analyze(runs: Sequence[Path], console: Console) -> int:
    """Run the Spark analysis of run folders again and judge them; returns the worst exit code.

    Raises:
        UsageError: one of them is no run folder; nothing was done then.
    """
    # All are looked at before the first is worked on, which takes a while.
    folders = [find_run(run) for run in runs]
    made: list[Results] = []
    began_s = time.monotonic()
    with shared_session():
        for folder in folders:
            if len(folders) > 1:
                elapsed_s = time.monotonic() - began_s
                pace = pace_words(len(made), len(folders), "run", elapsed_s)
                say(console, f"{pace}; now {folder.root}", "bold")
            made.append(_analyze(folder, console))
            if made[-1].interrupted:
                break
    code = worst([results.exit_code for results in made])
    answer(console, {"exit_code": code, "runs": made})
    _tell_github(made, *(results.system for results in made))
    return code


def _analyze(folder: RunFolder, console: Console) -> Results:
    def forget() -> None:
        shutil.rmtree(folder.operations, ignore_errors=True)
        shutil.rmtree(folder.analysis, ignore_errors=True)

    with judging_session(console, kill_all, shows=True) as session, session.judging():
        during = Waiting(console).during
        return _judge(folder.root, session, during, analyze=True, before_analysis=forget)


def replay(options: ReplayOptions, console: Console) -> int:
    """Run a recorded plan or world again, and say how often it came to the same.

    Returns the worst exit code; an exact replay that comes out differently is a failed harness.

    Raises:
        UsageError: there is no such run or world, or an option does not fit it.
    """
    from splitbrain.harness.campaign.replaying.exact import replay_file, replay_scenario

    options.check()
    if options.scenario is not None:
        return replay_file(options.scenario, console, options)
    if options.run is None:
        raise UsageError(
            "missing argument RUN", "Name a run folder, such as runs/latest, or a --scenario FILE"
        )
    folder = find_run(options.run)
    if added := check_code(folder, "replay", options.system):
        say(console, f"with {', '.join(added)}, which the run did not have")
    if is_exact(folder, options):
        return replay_scenario(folder, console, options, is_changed=bool(added))
    return _by_plan(folder, console, options)


def _by_plan(folder: RunFolder, console: Console, options: ReplayOptions) -> int:
    test = replay_options(
        folder.root, pinned=options.pinned, runs_folder=options.runs_folder, runtime=options.runtime
    )
    from splitbrain.systems import registry as systems

    planned = plan_test(test, systems.system(test.experiment.system))
    for line in changed_versions(read_plan(folder), planned.system):
        say(console, line)
    recorded = recorded_verdict(folder)
    judged: list[Judged] = []
    while len(judged) < options.times and not (judged and judged[-1].interrupted):
        judged.append(run_once(test, console, analyze=options.analyze))
    codes = [each.exit_code for each in judged]
    verdicts = [each.verdict for each in judged]
    lines = replay_lines(recorded, verdicts, options.times)
    for line in lines:
        say(console, line)
    answer(console, replay_answer(recorded, verdicts, codes))
    # Replays that fail alike are one thing to tell.
    alarms = {
        (alarm.title, alarm.fingerprint or alarm.sentence): alarm
        for results in _results(judged)
        for alarm in alarms_of(results)
    }
    title = f"Replay of {folder.root.parent.name}/{folder.root.name}"
    tell_github([*alarms.values()], lambda: summary_of(title, lines), test.experiment.system)
    return worst(codes)
