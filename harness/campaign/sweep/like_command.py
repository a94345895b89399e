"""The command ``splitbrain sim --like RUN``: looks for a seed that fails as RUN did in containers.

Worlds near the run's schedule (``harness.campaign.sweep.likeness``) are tried until one fails with
the same verdict: the same checkers of outcomes found a violation. That one is exact, so it can be
replayed step by step and shrunk in seconds. Must never pass off another verdict as the same.
Source: issue 6, item 6.
"""

import shlex
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.runtime import SIMULATED
from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.replaying.recorded import check_code
from splitbrain.harness.campaign.replaying.verdicts import ReplayVerdict, recorded_verdict
from splitbrain.harness.campaign.shrinking.search_folder import runs_folder_of
from splitbrain.harness.campaign.sweep.likeness import Likeness, like_scenario, likeness_of
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.campaign.sweep.sweep import Sweep, SweepOrder
from splitbrain.harness.campaign.sweep.sweep_display import SweepDisplay
from splitbrain.harness.campaign.sweep.trial import Purpose, SeedResult, tried
from splitbrain.harness.console.console_lines import say
from splitbrain.harness.console.interrupts import stopped_in_order
from splitbrain.harness.console.standard_streams import answer
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.folder.plan_checkers import checkers_of
from splitbrain.harness.folder.scenario_file import read_scenario
from splitbrain.harness.folder.scenario_text import scenario_words
from splitbrain.harness.folder.store import find_run
from splitbrain.harness.folder.tool_version import this_tool
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.harness.run.options import check_bugs, check_simulated
from splitbrain.history.reproduce_line import line_of
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.seeds import seeds_named

SEEDS: Final = range(200)
#: Figure of a seed that failed with another verdict.
_OTHERWISE: Final = "failed-otherwise"


class LikeOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the search near a run; pickles."""

    likeness: Likeness
    #: Checkers that must find a violation, these and no others.
    wanted: tuple[str, ...]
    #: Where the run folder goes; absolute.
    runs_folder: str


class LikeResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a search among seeds."""

    #: None: none of them failed with the same verdict.
    seed: int | None
    folder: Path | None
    tried: int
    #: Seeds that failed with other verdicts, and that could not be run.
    otherwise: int
    crashed: int
    seconds: float
    exit_code: int
    interrupted: bool = False


def try_like(order: LikeOrder, seed: int, purpose: Purpose) -> SeedResult:
    """Draw, run and judge one seed as ``trial.try_seed`` does; another verdict is no failure."""
    likeness = order.likeness
    kept: dict[str, Any] = {"kind": "like", "like": likeness.run}
    runs_folder = Path(order.runs_folder)
    result = tried(seed, purpose, lambda: like_scenario(likeness, seed), runs_folder, **kept)
    if not result.failed_by or tuple(sorted(result.failed_by)) == order.wanted:
        return result
    figures = {**result.figures, _OTHERWISE: 1}
    return msgspec.structs.replace(result, failed_by=(), sentence=None, figures=figures)


def order_of(folder: RunFolder, runs_folder: Path) -> LikeOrder:
    """Return the order of a search near a failed run; raise UsageError if there can be none."""
    from splitbrain.systems.registry import system

    record = load_run(folder.root)
    plan = record.plan
    if plan is not None and plan.experiment.runtime == SIMULATED:
        problem = f"{folder.root} is a simulated run, which is exact already"
        raise UsageError(problem, f"`splitbrain shrink {folder.root}` makes it small")
    verdict = wanted_verdict(folder)
    happenings: tuple[str, ...] = ()
    if plan is not None:
        adapter = system(plan.experiment.system)
        check_bugs(plan.experiment.bugs, adapter)
        happenings = check_simulated(adapter).happenings
    likeness = likeness_of(record, happenings)
    applicable = checkers_of(like_scenario(likeness, 0).load)
    missing = [name for name in verdict.violated if name not in applicable]
    if missing:
        raise UsageError(
            f"{', '.join(missing)} found the violation of {folder.root}, and judges only runs with "
            "real processes",
            f"`splitbrain shrink {folder.root} --no-simulate` makes it small in its own runtime",
        )
    return LikeOrder(
        likeness=likeness, wanted=verdict.violated, runs_folder=str(runs_folder.absolute())
    )


def wanted_verdict(folder: RunFolder) -> ReplayVerdict:
    """Return the run's verdict; raise UsageError if there is none, or it did not fail."""
    verdict = recorded_verdict(folder)
    if verdict is None:
        problem = f"nobody has judged {folder.root}, so there is no verdict to look for"
        raise UsageError(problem, f"`splitbrain check {folder.root}` judges it")
    if not verdict.is_invalid:
        right = f"nothing is wrong with {folder.root} (its verdict is {verdict.text})"
        raise UsageError(f"{right}, so there is no failure to look for", "Name a run that failed")
    return verdict


def run_like(
    run_path: Path,
    console: Console,
    seeds: range,
    jobs: int,
    runs_folder: Path | None,
    system: str | None,
) -> int:
    """Look for a seed near a failed run, report, and return the exit code.

    ``runs_folder`` takes the run folder of the seed; None: beside the run's test. ``system`` is the
    name of the system that the command was given, if any; it must be the run's.

    Raises:
        UsageError: the run cannot be looked for in simulation.
        HarnessError: no worker process could be started.
    """
    folder = find_run(run_path)
    check_code(folder, "sim --like", system)
    order = order_of(folder, runs_folder or runs_folder_of(folder))
    stop = Stop()
    with stopped_in_order(stop, left="left at once; a folder that was made already stays."):
        result = search(order, console, seeds, jobs=jobs, stop=stop)
    for line in lines_of(result, order, seeds):
        say(console, line)
    answer(console, result)
    return result.exit_code


def search(
    order: LikeOrder, console: Console, seeds: range, *, jobs: int, stop: Stop
) -> LikeResult:
    """Try seeds until one fails with the same verdict; raise HarnessError without any worker."""
    likeness = order.likeness
    options = SimOptions(jobs=jobs, check_share=0.0, fail_fast=True, keep=1)
    wanted = SweepOrder(options=options, seeds=seeds, try_seed=partial(try_like, order))
    sweep = Sweep(wanted, stop)
    title = (
        f"splitbrain sim, worlds like {likeness.run}: {counted(len(likeness.faults), 'fault')}, "
        f"{', '.join(order.wanted)} wanted, {seeds_named(seeds)}"
    )
    failures: list[SeedResult] = []
    otherwise = 0

    def took(result: SeedResult) -> None:
        nonlocal otherwise
        otherwise += result.purpose == "first" and _OTHERWISE in result.figures
        if result.failed_by:
            # The run that was kept has the folder.
            failures.insert(0 if result.purpose == "keep" else len(failures), result)
        display.took(result)

    for kind, reason in likeness.left_out.items():
        say(console, f"left out in simulation: {kind}, for {reason}")
    display = SweepDisplay(console, title, len(seeds), sweep.tally, 1)
    with display:
        sweep.carry_out(took)
    first = failures[0] if failures else None
    return LikeResult(
        seed=None if first is None else first.seed,
        folder=None if first is None or first.folder is None else Path(first.folder),
        tried=sweep.tally.tried,
        otherwise=otherwise,
        crashed=sweep.tally.crashed,
        seconds=display.elapsed_s,
        exit_code=sweep.tally.exit_code(is_whole=not sweep.is_cut_short),
        interrupted=stop.is_set(),
    )


def lines_of(result: LikeResult, order: LikeOrder, seeds: range) -> list[str]:
    """Return the result of the search in words."""
    others = f"; {result.otherwise:,} failed otherwise" if result.otherwise else ""
    crashed = f"; {result.crashed:,} could not be run" if result.crashed else ""
    wanted = ", ".join(order.wanted)
    took = f"{counted(result.tried, 'seed')}, {result.seconds:.1f} s{others}{crashed}"
    if result.seed is None:
        sentence = f"no seed failed with the same verdict ({wanted}) after {took}."
        if result.interrupted:
            return [f"interrupted: {sentence}"]
        return [f"{sentence} `--seeds {seeds.stop}:{2 * seeds.stop}` tries others."]
    lines = [f"seed {result.seed} fails with the same verdict ({wanted}); {took}."]
    if result.folder is not None:
        quoted = shlex.quote(str(result.folder))
        path = RunFolder(result.folder.absolute()).scenario
        words = scenario_words(read_scenario(path), this_tool(), str(path))
        lines += [
            f"folder:    {result.folder}",
            f"replay:    splitbrain replay {quoted}",
            f"shrink:    splitbrain shrink {quoted}",
            f"reproduce: {line_of(words, this_tool())}",
        ]
    return lines
