"""Selection of a gate's runs and sweeps: from their folders, folders of them, ledgers, and lakes.

A ledger stands for the last night of each suite in it; ``LEDGER@NIGHT`` names another night. A run
of a ledger whose folder is still there is read from its folder. Every run counts once, however
often it was named. Must never leave out a run in silence: an unreadable or unjudged one is listed
as such.
"""

import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.names import system_name
from splitbrain.contracts.nearest import or_nearest
from splitbrain.harness.campaign.gate.gated_run import GatedRun, Outcome
from splitbrain.harness.campaign.gate.gated_sweep import GatedSweep, sweep_in
from splitbrain.harness.campaign.gate.lake_runs import is_lake, read_lake
from splitbrain.harness.campaign.suite.ledger import Ledger, RunEnded
from splitbrain.harness.campaign.suite.tally import NightTally, nights_of
from splitbrain.harness.folder.manifest import damage
from splitbrain.harness.folder.results import leading_sentence
from splitbrain.harness.folder.results import read as read_results
from splitbrain.harness.folder.tool_version import this_tool
from splitbrain.history.border import foreign_entry
from splitbrain.history.expectation import expects_violation, was_done_again
from splitbrain.history.plan import Plan, decode_plan, reproduce_command
from splitbrain.history.reproduce_line import line_of
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.seed_records import find_sweeps

_UNKNOWN = "unknown"
_OUTCOMES: dict[str, Outcome] = {
    "INVALID": "invalid",
    "HARNESS FAILED": "failed",
    "INTERRUPTED": "unknown",
    "UNKNOWN": "unknown",
    "VACUOUS": "vacuous",
    "VALID": "valid",
}
_LEDGER_SUFFIX = ".jsonl"


class Selection(msgspec.Struct, frozen=True):
    """The runs and sweeps that a gate was asked about."""

    runs: tuple[GatedRun, ...]
    sources: tuple[str, ...]
    sweeps: tuple[GatedSweep, ...] = ()

    @property
    def judged_by_policy(self) -> tuple[GatedRun, ...]:
        """Return all runs but the canaries."""
        return tuple(run for run in self.runs if not run.is_canary)

    @property
    def with_failed_seeds(self) -> tuple[GatedRun, ...]:
        """Return these runs, and the failed seeds of all sweeps as runs."""
        failed = (run for sweep in self.sweeps for run in sweep.failed())
        return (*self.judged_by_policy, *failed)


def select(sources: Iterable[str]) -> Selection:
    """Return the runs that the sources name, each once, in their order.

    Raises:
        UsageError: a source is not there.
        HarnessError: a ledger cannot be read.
    """
    sources = tuple(sources)
    runs: dict[str, GatedRun] = {}
    sweeps: dict[str, GatedSweep] = {}
    for source in sources:
        if is_lake(source):
            content = read_lake(source)
            found = [(f"{source}/{run.run_id}", run) for run in content.runs]
            swept: Iterable[GatedSweep] = content.sweeps
        else:
            found = list(_runs_of(source))
            swept = map(sweep_in, find_sweeps(Path(source).resolve()))
        for key, run in found:
            runs.setdefault(key, run)
        for sweep in swept:
            sweeps.setdefault(sweep.sweep_id, sweep)
    return Selection(tuple(_with_own_names(runs.values())), sources, tuple(sweeps.values()))


def is_run_source(source: str) -> bool:
    """Return whether it names runs or a ledger rather than another file."""
    return Path(source).is_dir() or is_lake(source) or ledger_of(source) is not None


def _runs_of(source: str) -> Iterator[tuple[str, GatedRun]]:
    """Yield runs with a key that is equal where two sources name the same run."""
    path = Path(source)
    if path.is_dir():
        for folder in _run_folders(path):
            yield str(folder.root), _from_folder(folder)
        return
    ledger = ledger_of(source)
    if ledger is None:
        raise UsageError(
            f"there are no runs at {source}",
            "Name a run folder, a folder of them such as runs/, a ledger.jsonl, a lake, or what "
            "`splitbrain sim --output` left",
        )
    for night in _nights_of(*ledger):
        for line in night.runs:
            folder = RunFolder(Path(line.run_folder).resolve()) if line.run_folder else None
            if folder is not None and folder.results.is_file():
                yield str(folder.root), _with_suite_facts(_from_folder(folder), line, night)
            else:
                name = f"{line.suite}/{line.night}/{line.number}"
                yield name, _with_suite_facts(_from_ledger(line), line, night)


def _run_folders(top: Path) -> Iterator[RunFolder]:
    """Yield run folders at or below a folder, by name; links such as ``latest`` are skipped.

    So are attempts that a suite has done again, unless one is named itself.
    """
    for place, folders, _ in os.walk(top.resolve()):
        folder = RunFolder(Path(place))
        if folder.plan.exists() or folder.results.exists():
            folders.clear()
            if folder.root == top.resolve() or not was_done_again(folder.root):
                yield folder
        elif is_lake(place):
            folders.clear()
        folders.sort()


def _from_folder(folder: RunFolder) -> GatedRun:
    run = _read_folder(folder)
    if not expects_violation(folder.root):
        return run
    is_missed = run.outcome != "invalid"
    return msgspec.structs.replace(run, is_canary=True, canary_missed=is_missed)


def _read_folder(folder: RunFolder) -> GatedRun:
    if (foreign := foreign_entry(folder.root)) is not None:
        why = f"It holds {foreign}, which no run makes, so that nothing of it was read."
        return _unread(folder, why)
    if changed := damage(folder):
        why = f"{changed[0]}, so that nothing that is there now counts."
        return _unread(folder, f"It is not as the run left it: {why}")
    plan = _plan_of(folder)
    try:
        results = read_results(folder.results)
    except FileNotFoundError:
        return _unjudged(folder, plan, "Nobody has judged it")
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        return _unjudged(folder, plan, f"{folder.results.name} cannot be read ({reason})")
    return GatedRun(
        name=_name_of(folder),
        folder=folder.root,
        has_history=folder.history.is_file(),
        system=results.system,
        version=_version(plan),
        workload=results.workload,
        runtime=results.runtime,
        seed=results.seed,
        outcome=_OUTCOMES[results.headline],
        sentence=leading_sentence(results),
        reproduce=results.reproduce,
        checkers=results.checkers,
        faults=results.faults,
        elections=results.elections,
        longest_unavailability_ms=results.longest_unavailability_ms,
        problems=(*results.vacuous, *results.problems),
        replay_of=_replayed(plan),
    )


def _name_of(folder: RunFolder) -> str:
    return f"{folder.root.parent.name}/{folder.root.name}"


def _unjudged(folder: RunFolder, plan: Plan | None, why: str) -> GatedRun:
    command = f"splitbrain check {shlex.quote(str(folder.root))}"
    again = line_of(["splitbrain", "check", _name_of(folder)], this_tool())
    return GatedRun(
        name=_name_of(folder),
        folder=folder.root,
        has_history=folder.history.is_file(),
        system=_UNKNOWN if plan is None else system_name(plan.experiment.system),
        version=_version(plan),
        workload=_UNKNOWN if plan is None else plan.workload,
        runtime=_UNKNOWN if plan is None else plan.experiment.runtime,
        seed=None if plan is None else plan.experiment.seed,
        outcome="unjudged",
        sentence=f"{why}: {command} does.",
        reproduce=again if plan is None else reproduce_command(plan),
        replay_of=_replayed(plan),
    )


def _unread(folder: RunFolder, why: str) -> GatedRun:
    return msgspec.structs.replace(_unjudged(folder, None, ""), sentence=why, has_history=False)


def _plan_of(folder: RunFolder) -> Plan | None:
    try:
        return decode_plan(folder.plan.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def _version(plan: Plan | None) -> str:
    if plan is None:
        return _UNKNOWN
    return plan.system_versions.get(system_name(plan.experiment.system), _UNKNOWN)


def _replayed(plan: Plan | None) -> str | None:
    return None if plan is None or plan.replay_of is None else Path(plan.replay_of).name


def ledger_of(source: str) -> tuple[Path, str | None] | None:
    """Return the ledger and the night that a source names; None where it names no ledger."""
    before, _, after = source.rpartition("@")
    for path, night in ((Path(source), None), (Path(before), after)):
        if path.is_file() and path.suffix == _LEDGER_SUFFIX:
            return path, night
    return None


def _nights_of(path: Path, wanted: str | None) -> Iterable[NightTally]:
    nights = nights_of(Ledger(path).lines())
    if wanted is not None:
        names = [night.began.night for night in nights]
        nights = [night for night in nights if night.began.night == wanted]
        if not nights:
            raise UsageError(
                f"the ledger {path} has no night {wanted!r}", or_nearest(wanted, names, "nights")
            )
    return {night.began.suite: night for night in nights}.values()


def _from_ledger(line: RunEnded) -> GatedRun:
    def option(name: str) -> str:
        return str(line.options.get(name, _UNKNOWN))

    system = option("system")
    sentence = line.sentence or f"It is {line.verdict}."
    return GatedRun(
        name=f"{line.suite}/{line.night}/{line.number}",
        folder=None,
        system=system,
        version=line.system_versions.get(system, _UNKNOWN),
        workload=line.cell if line.is_program else option("workload"),
        runtime=option("runtime"),
        seed=line.seed,
        outcome=line.verdict,
        sentence=sentence,
        reproduce=line.reproduce,
        checkers=tuple(
            CheckResult(checker, Verdict.INVALID, sentence) for checker in line.violated
        ),
        problems=line.vacuous,
    )


def _with_suite_facts(run: GatedRun, line: RunEnded, night: NightTally) -> GatedRun:
    is_canary = line.expect == "invalid"
    # Enough other runs of its cell found the bug.
    has_teeth = any(cell.planned.cell == line.cell and not cell.lacks_teeth for cell in night.cells)
    is_missed = is_canary and not line.as_expected and not has_teeth
    facts = {"is_canary": is_canary, "canary_missed": is_missed, "took_s": line.took_s}
    return msgspec.structs.replace(run, **facts, died_before=line.attempt - 1)


def _with_own_names(runs: Iterable[GatedRun]) -> Iterator[GatedRun]:
    """Number runs of one name in different places."""
    seen: dict[str, int] = {}
    for run in runs:
        count = seen[run.name] = seen.get(run.name, 0) + 1
        yield run if count == 1 else msgspec.structs.replace(run, name=f"{run.name} ({count})")
