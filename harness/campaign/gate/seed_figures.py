"""Figures over the seeds of sweeps.

A world counts once, however many sweeps ran it: the worst of its outcomes is its outcome. No number
of clean seeds makes up for one that nobody can tell: zero failed seeds are unknown where a seed
could not be run or came out differently, or where a sweep cannot be read.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from splitbrain.contracts.figure import Dimension, Measured, Subject
from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.gate.failures import Failures
from splitbrain.harness.campaign.gate.gated_sweep import GatedSweep
from splitbrain.history.seed_records import SeedVerdict

#: Outcomes of a seed; the worse ones come last.
_RANKS: Final = ("clean", "spared", "undecided", "crashed", "failed")


class _Worlds(NamedTuple):
    """Worlds that fit the conditions."""

    #: Outcome of each world to their number; ``failed`` but for what is quarantined.
    counts: Counter[str]
    #: Seeds that could not be run, or came out differently, and sweeps that cannot be read, of all
    #: that the conditions on sweeps leave: what they would have been nobody knows.
    broken: int
    unreadable: int
    not_run: int

    @property
    def run(self) -> int:
        return self.counts.total() - self.counts["crashed"]


def measure_seeds(subject: Subject, sweeps: Sequence[GatedSweep], failures: Failures) -> Measured:
    """Return the value of a figure over seeds."""
    fitting = [sweep for sweep in sweeps if _picks(subject, "system", sweep.system)]
    if not fitting:
        return Measured(None, 0, "there is no such sweep" if sweeps else "there is no sweep")
    worlds = _worlds(subject, fitting, failures)
    if subject.figure == "seeds_not_run":
        return Measured(float(worlds.not_run), worlds.run)
    if subject.figure == "seeds_broken" and worlds.run + worlds.broken:
        return Measured(float(worlds.broken), worlds.run + worlds.broken)
    if not worlds.run:
        return Measured(None, 0, "no such seed was run")
    failed = worlds.counts["failed"]
    match subject.figure:
        case "seeds_run":
            return Measured(float(worlds.run), worlds.run)
        case "seeds_undecided":
            return Measured(float(worlds.counts["undecided"]), worlds.run)
        case "seeds_failed" | "seeds_failed_share":
            if not failed and (lack := _lack(worlds)):
                return Measured(None, worlds.run, lack)
            share = subject.figure == "seeds_failed_share"
            return Measured(failed / worlds.run if share else float(failed), worlds.run)
        case _:
            raise AssertionError(subject.figure)


def clean_seeds(sweeps: Sequence[GatedSweep]) -> tuple[int, int]:
    """Return how many worlds were run, and how many of them prove something."""
    worlds = _worlds(Subject("seeds_run"), sweeps, Failures((), (), ()))
    is_sound = not worlds.unreadable
    return worlds.run, worlds.counts["clean"] if is_sound else 0


def _lack(worlds: _Worlds) -> str | None:
    if worlds.unreadable:
        return f"{counted(worlds.unreadable, 'sweep')} cannot be read, or does not add up"
    if worlds.broken:
        return f"{counted(worlds.broken, 'seed')} could not be run, or came out differently again"
    return None


def _worlds(subject: Subject, sweeps: Sequence[GatedSweep], failures: Failures) -> _Worlds:
    worst: dict[tuple[object, ...], int] = {}
    broken: set[tuple[object, ...]] = set()
    for sweep in sweeps:
        if sweep.sweep is None:
            continue
        drawn = sweep.sweep
        way = (drawn.system, drawn.state_machine, drawn.bugs, drawn.patches, drawn.beyond_promise)
        for seed in sweep.seeds:
            world = (*way, seed.seed)
            if seed.outcome == "crashed" or seed.seed in sweep.differed:
                broken.add(world)
            if seed.outcome == "crashed" or _picks(subject, "workload", seed.workload):
                outcome = _outcome(subject, sweep, seed, failures)
                worst[world] = max(worst.get(world, 0), _RANKS.index(outcome))
    return _Worlds(
        counts=Counter(_RANKS[rank] for rank in worst.values()),
        broken=len(broken),
        unreadable=sum(sweep.problem is not None for sweep in sweeps),
        not_run=sum(sweep.not_run for sweep in sweeps),
    )


def _outcome(subject: Subject, sweep: GatedSweep, seed: SeedVerdict, failures: Failures) -> str:
    """Return a seed's outcome; a failure that is quarantined, or not asked for, is none."""
    if seed.outcome != "failed":
        return seed.outcome
    for result in sweep.results_of(seed):
        failure = failures.of(result)
        if failure is not None and (
            failure.is_spared
            or not _picks(subject, "checker", result.checker)
            or not _picks(subject, "fingerprint", failure.text)
        ):
            continue
        return "failed"
    return "spared"


def _picks(subject: Subject, dimension: Dimension, value: str) -> bool:
    return all(part.holds_for(value) for part in subject.conditions_on(dimension))
