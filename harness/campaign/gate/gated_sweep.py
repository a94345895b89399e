"""Sweeps of simulated worlds as the gate sees them, from their folders or a lake.

Of a sweep that cannot be read, and of one that does not add up, no seed counts as clean.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.runtime import SIMULATED
from splitbrain.harness.campaign.gate.gated_run import GatedRun
from splitbrain.history.seed_records import (
    Found,
    SeedVerdict,
    SweepFolder,
    SweepLine,
    contradiction,
)
from splitbrain.spark_analysis.lake.commits import Row

_UNKNOWN: Final = "unknown"


class GatedSweep(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep that a gate looks at."""

    #: As the user finds it, and as every copy of it is called.
    name: str
    sweep_id: str
    #: None: nothing of it can be read.
    sweep: SweepLine | None = None
    seeds: tuple[SeedVerdict, ...] = ()
    #: Seeds that came out differently, or not at all, when they were run again.
    differed: frozenset[int] = frozenset()
    #: Why its seeds do not count as clean, one clause.
    problem: str | None = None

    @property
    def system(self) -> str:
        """Return the name of its system."""
        return _UNKNOWN if self.sweep is None else self.sweep.system

    @property
    def not_run(self) -> int:
        """Return the number of seeds that were asked for and never tried."""
        return 0 if self.sweep is None else self.sweep.planned - len(self.seeds)

    def failed(self) -> Iterator[GatedRun]:
        """Yield each failed seed, as a run that was not kept."""
        for seed in self.seeds:
            if seed.outcome == "failed":
                yield self._as_run(seed)

    def results_of(self, seed: SeedVerdict) -> tuple[CheckResult, ...]:
        """Return what was found in a seed."""
        return tuple(map(_result, seed.found)) or self._as_run(seed).invalid

    def _as_run(self, seed: SeedVerdict) -> GatedRun:
        assert self.sweep is not None, "a seed has a sweep"
        return GatedRun(
            name=f"{self.name}, seed {seed.seed}",
            folder=None,
            system=self.system,
            version=_UNKNOWN,
            workload=seed.workload or _UNKNOWN,
            runtime=SIMULATED,
            seed=seed.seed,
            outcome="invalid",
            sentence=seed.sentence or "A violation was found.",
            reproduce=seed.reproduce or "",
            checkers=tuple(map(_result, seed.found)),
            is_seed=True,
        )


def _result(found: Found) -> CheckResult:
    violations = () if found.violation is None else (found.violation,)
    return CheckResult(found.checker, Verdict.INVALID, found.reason, violations=violations)


def sweep_in(folder: Path) -> GatedSweep:
    """Return the sweep of a folder, told as unreadable where it is."""
    name = f"{folder.parent.name}/{folder.name}"
    try:
        read = SweepFolder(folder)
        lines = tuple(read.lines(SeedVerdict))
        end = read.end()
    except ValueError as error:
        return GatedSweep(name=name, sweep_id=str(folder), problem=str(error))
    problem, sweep = None, read.sweep
    if end is not None:
        sweep = msgspec.structs.replace(sweep, planned=sweep.planned - end.skipped)
        failed = sum(line.outcome == "failed" for line in lines)
        problem = contradiction(read.sweep, end, len(lines), failed)
    return GatedSweep(
        name=name,
        sweep_id=read.sweep_id,
        sweep=sweep,
        seeds=lines,
        differed=frozenset() if end is None else end.again_otherwise,
        problem=problem,
    )


def sweeps_of_rows(
    sweeps: Iterable[Row], seeds: Iterable[Row], systems: Mapping[str, str]
) -> Iterator[GatedSweep]:
    """Yield the sweeps of a lake, by id, from rows of its tables ``sweeps`` and ``seeds``."""
    by_sweep: dict[str, list[Row]] = {}
    for row in seeds:
        by_sweep.setdefault(row["run_id"], []).append(row)
    for row in sorted(sweeps, key=lambda row: str(row["run_id"])):
        sweep_id = row["run_id"]
        of_sweep = by_sweep.get(sweep_id, [])
        yield GatedSweep(
            name=sweep_id,
            sweep_id=sweep_id,
            sweep=_sweep(row, systems[sweep_id]),
            seeds=tuple(map(_seed, of_sweep)),
            differed=frozenset(row["seed"] for row in of_sweep if row["differed"]),
            problem=_problem(row),
        )


def _problem(row: Row) -> str | None:
    # A sweep that did not come to its end is told by what it did not run.
    if row["state"] != "damaged":
        return None
    return " ".join(row["damage"]).rstrip(".")


def _sweep(row: Row, system: str) -> SweepLine:
    return SweepLine(
        system=system,
        seeds=row["seeds"],
        planned=row["planned"],
        bugs=tuple(row["bugs"]),
        state_machine=row["state_machine"],
        beyond_promise=row["beyond_promise"],
        patches=tuple(row["patches"]),
        started_at=str(row["started_at"]),
        tool_version=row["tool_version"] or _UNKNOWN,
        tool_commit=row["tool_commit"],
    )


def _seed(row: Row) -> SeedVerdict:
    return SeedVerdict(
        seed=row["seed"],
        outcome=row["outcome"],
        workload=row["workload"],
        sentence=row["sentence"],
        found=msgspec.json.decode(row["found"], type=tuple[Found, ...]),
        reproduce=row["reproduce"],
    )


def sweep_sentence(sweep: GatedSweep) -> str:
    """Return one sentence on how far a sweep went and what it came to."""
    if sweep.sweep is None:
        return f"It cannot be read: {sweep.problem}."
    planned = sweep.sweep.planned
    counts = sorted(Counter(seed.outcome for seed in sweep.seeds).items())
    told = ", ".join(f"{count:,} {outcome}" for outcome, count in counts) or "none"
    ways = [f"with {', '.join(sweep.sweep.bugs)}"] if sweep.sweep.bugs else []
    ways += ["beyond the promise"] if sweep.sweep.beyond_promise else []
    how = f", {' and '.join(ways)}" if ways else ""
    sentences = [f"{len(sweep.seeds):,} of {planned:,} seeds of {sweep.system}{how}: {told}."]
    if sweep.differed:
        sentences.append(f"{len(sweep.differed):,} came out differently when they were run again.")
    if sweep.problem is not None:
        sentences.append(f"None of them counts as clean: {sweep.problem}.")
    return " ".join(sentences)
