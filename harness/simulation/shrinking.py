"""Makes a failing scenario as small as it can be while it fails in the same way.

All at once, if that will do; else faults first, then operations, then when faults strike, then
clients and nodes, then weather and settings, all of it again until nothing changes. A smaller world
draws other delays, so a failure that is there in principle may hide in one seed: large removals are
tried with a few other seeds before many operations are tried one by one, and where nothing can go
any more, small ones are too. Every candidate is run, none twice. Must never hand back a scenario
that was not seen to fail. Source: issue 5, item 8.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from contracts.scenario import Scenario
from harness.simulation.shrink_oracle import Finding, Replay
from harness.simulation.shrink_steps import (
    BOLD,
    BUGS,
    FAULTS,
    LENGTH_STEP,
    OPERATIONS,
    OPERATIONS_BY_CLIENT,
    SHAPE_STEPS,
    WEATHER_STEPS,
    ended,
    fault_steps,
    trimmed,
)
from nemesis.search import ListStep, Search, SearchBudget

#: Other seeds with which a removal is tried that fails in the scenario's own.
OTHER_SEEDS: Final = 8
#: Operations above which single ones are not tried with other seeds; there would be too many.
_SINGLES_MAX: Final = 40
#: Operations up to which delta debugging is cheaper than large removals with other seeds.
_FEW_OPERATIONS: Final = 10


class Size(msgspec.Struct, frozen=True):
    """How large a scenario is."""

    faults: int
    #: That clients began while faults could strike.
    operations: int
    clients: int
    nodes: int


class Progress(msgspec.Struct, frozen=True):
    """How far the search is."""

    #: What is being tried.
    step: str
    before: Size
    now: Size
    replays: int


class Shrinking(msgspec.Struct, frozen=True, kw_only=True):
    """What the search came to."""

    scenario: Scenario
    finding: Finding
    before: Size
    after: Size
    #: Runs that were made.
    replays: int
    #: Whether no fault and no operation can be taken away alone, in the scenario's own seed.
    is_minimal: bool
    #: Why the search ended early; None if it did not.
    cut_short: str | None


def shrink(
    scenario: Scenario,
    finding: Finding,
    replay: Replay,
    budget: SearchBudget,
    told: Callable[[Progress], None] = lambda _progress: None,
    other_seeds: int = OTHER_SEEDS,
) -> Shrinking:
    """The smallest scenario found that fails in the same way.

    Args:
        scenario: fails.
        finding: what running it showed.
        replay: runs a candidate.
        budget: counts the replays and ends the search.
        told: told before each replay.
        other_seeds: seeds with which a removal is tried that fails in the scenario's own.
    """
    search = _Search(scenario, finding, replay, budget, told, other_seeds)
    is_minimal = search.descend()
    while search.leap(_removals):
        is_minimal = search.descend()
    search.end()
    return Shrinking(
        scenario=search.best,
        finding=search.finding,
        before=search.before,
        after=size_of(search.best, search.finding),
        replays=budget.tries,
        is_minimal=is_minimal,
        cut_short=budget.exhausted(),
    )


def size_of(scenario: Scenario, finding: Finding) -> Size:
    """How large a failing scenario is."""
    return Size(
        faults=len(scenario.faults),
        operations=finding.operations,
        clients=scenario.load.clients,
        nodes=scenario.nodes,
    )


class _Search(Search[Scenario]):
    """The best scenario so far, what it showed, and all that was tried."""

    def __init__(
        self,
        scenario: Scenario,
        finding: Finding,
        replay: Replay,
        budget: SearchBudget,
        told: Callable[[Progress], None],
        other_seeds: int,
    ) -> None:
        super().__init__(scenario, self._fails, budget)
        self.finding = finding
        self.before = size_of(scenario, finding)
        self._replay, self._tries, self._told = replay, budget, told
        self._other_seeds = other_seeds
        #: By a digest of the scenario; a whole one has thousands of bytes.
        self._tried: dict[bytes, Finding | None] = {_digest(scenario): finding}

    def descend(self) -> bool:
        """Take away what can go in this seed; whether no fault and no operation can go alone."""
        while True:
            before = self.best
            is_minimal = self._coarsely()
            while len(self.best.load.kept or ()) > _FEW_OPERATIONS and self.leap(_large_removals):
                is_minimal = self._coarsely()
            # Else the run is not the same when its operations are spelt out: all of them stay.
            is_minimal &= self.best.load.kept is not None
            is_minimal &= self.list(OPERATIONS)
            for step in (*fault_steps(self.best), *SHAPE_STEPS, *WEATHER_STEPS):
                self.value(step)
            if self.finding.happened.failed_us is None:
                self.value(LENGTH_STEP)
            if len(self.best.bugs) > 1:
                self.list(BUGS)
            if self.best == before or self.is_over:
                return is_minimal and self.best == before

    def _coarsely(self) -> bool:
        """Take away what can go in large pieces; whether no fault can go alone."""
        self._trim()
        self.value(BOLD)
        is_minimal = self.list(FAULTS)
        self.list(OPERATIONS_BY_CLIENT)
        return is_minimal

    def leap(self, removals: Callable[[Scenario], Iterable[Scenario]]) -> bool:
        """Find a removal that fails in another seed; False where there is none."""
        return any(
            self.takes(msgspec.structs.replace(candidate, seed=seed), "other seeds")
            for candidate in removals(self.best)
            for seed in range(1, self._other_seeds + 1)
            if not self.is_over
        )

    def end(self) -> None:
        """End the load with the failure; done last, since a smaller run may fail later."""
        self.takes(ended(self.best, self.finding.happened), "length of the load")

    def _trim(self) -> None:
        """Drop what came after the failure, as long as that changes something."""
        # What a run shows changes with each step, so that the candidates are made anew.
        while any(
            self.takes(candidate, "what came after")
            for candidate in trimmed(self.best, self.finding.happened)
        ):
            pass

    def _fails(self, candidate: Scenario, step: str) -> bool:
        """The oracle: whether a candidate fails as wanted, each asked about once."""
        digest = _digest(candidate)
        if digest not in self._tried:
            now = size_of(self.best, self.finding)
            self._told(Progress(step, self.before, now, self._tries.tries))
            self._tries.tries += 1
            self._tried[digest] = self._replay(candidate)
        finding = self._tried[digest]
        if finding is not None:
            self.finding = finding
        return finding is not None


def _large_removals(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios without weather, without operations, or with half of them."""
    yield from BOLD.simpler(scenario)
    kept = len(OPERATIONS.items(scenario))
    if kept:
        yield from _without(scenario, OPERATIONS, (kept + 1) // 2)


def _removals(scenario: Scenario) -> Iterator[Scenario]:
    """Those, and scenarios without one fault, and without one operation."""
    yield from _large_removals(scenario)
    yield from _without(scenario, FAULTS, 1)
    if len(OPERATIONS.items(scenario)) <= _SINGLES_MAX:
        yield from _without(scenario, OPERATIONS, 1)


def _without(scenario: Scenario, step: ListStep[Scenario], count: int) -> Iterable[Scenario]:
    items = step.items(scenario)
    for start in range(0, len(items), count):
        yield step.keeping(scenario, items[:start] + items[start + count :])


def _digest(scenario: Scenario) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(scenario), digest_size=16).digest()
