"""Oracle that runs a smaller scenario to find out whether it still fails in the same way.

An invariant fails again if the same one does; a finding of checkers, if one of the same checkers
finds something. Where an id alone does not identify the failure, the violation's kind must be equal
too: type and place of an exception, the class of a reason to end. Most candidates do not fail, so
checkers run only where the failure is one of theirs, and a failure before the heal is looked for
only until then. Must never take a scenario that cannot be run for one that fails, nor run one
twice.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.scenario import Scenario, Violation
from splitbrain.harness.campaign.sweep.trial import run, simulated_system
from splitbrain.harness.folder.simulation_outcome import JudgedOutcome, SimulationOutcome
from splitbrain.harness.judge.simulated_outcomes import judged
from splitbrain.harness.run.world.simulate import simulate
from splitbrain.nemesis.search import Happened, Pair, SearchBudget
from splitbrain.simulation.world.world import SimulatedWorld


class _TooLate(BaseException):
    """Everything has healed and nothing has failed; no ``Exception``, which would be a finding."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """The failure that must come again."""

    #: Id of an invariant; None where only the checkers found something.
    invariant: str | None = None
    kind: str | None = None
    checkers: tuple[str, ...] = ()
    #: It must fail before everything heals.
    is_early: bool = False
    is_any: bool = False
    #: All of the checkers must find something, and nothing else may be found.
    is_alike: bool = False

    @property
    def needs_checkers(self) -> bool:
        """Return whether the checkers of outcomes must run."""
        return self.is_any or self.invariant is None

    def is_in(self, outcome: JudgedOutcome) -> bool:
        """Return whether this outcome fails alike."""
        failed_by = outcome.failed_by
        if self.is_any:
            return bool(failed_by)
        if self.is_alike:
            return tuple(sorted(failed_by)) == self.checkers
        if self.invariant is None:
            return any(name in failed_by for name in self.checkers)
        return self.invariant in failed_by and self.kind == _kind(outcome.outcome.violation)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A run that fails as wanted."""

    failed_by: tuple[str, ...]
    sentence: str
    happened: Happened
    trace_hash: str


#: Runs a scenario; None where it does not fail as wanted.
Replay = Callable[[Scenario], Finding | None]


class ExactOracle:
    """Oracle over scenarios, each asked about once; implements ``nemesis.search.Oracle``.

    ``budget`` counts the replays and ends the search; ``before_replay`` is called with each
    candidate and its step. One of a candidate's worlds with these ``seeds`` must fail, by default
    its own.
    """

    def __init__(
        self,
        replay: Replay,
        budget: SearchBudget,
        before_replay: Callable[[Scenario, str], None] = lambda _candidate, _step: None,
        seeds: Iterable[int] = (),
    ) -> None:
        self._replay, self._budget, self._before_replay = replay, budget, before_replay
        self._seeds = tuple(dict.fromkeys(seeds))
        #: Smallest world that failed so far, and its finding.
        self.best: Scenario | None = None
        self.finding: Finding | None = None
        #: By a digest of the scenario; a whole one has thousands of bytes.
        self._tried: dict[bytes, tuple[Scenario, Finding] | None] = {}

    def saw(self, scenario: Scenario, finding: Finding) -> None:
        """Take a world that was seen to fail elsewhere as the best so far."""
        self._tried[_digest(scenario)] = scenario, finding
        self.best, self.finding = scenario, finding

    @property
    def happened(self) -> Happened | None:
        """Return the evidence of the smallest so far; None where other seeds' worlds may differ."""
        return None if self.finding is None or self._seeds else self.finding.happened

    def fails(self, candidate: Scenario, step: str) -> bool:
        """Return whether it fails as wanted; if so it is the best so far."""
        digest = _digest(candidate)
        if digest not in self._tried:
            self._tried[digest] = self._ask(candidate, step)
        failing = self._tried[digest]
        if failing is not None:
            self.best, self.finding = failing
        return failing is not None

    def _ask(self, candidate: Scenario, step: str) -> tuple[Scenario, Finding] | None:
        for seed in self._seeds or (candidate.seed,):
            if self._budget.exhausted() is not None:
                return None
            self._before_replay(candidate, step)
            self._budget.tries += 1
            world = msgspec.structs.replace(candidate, seed=seed)
            finding = self._replay(world)
            if finding is not None:
                return world, finding
        return None


def failure_of(outcome: JudgedOutcome, *, is_any: bool = False) -> Failure | None:
    """Return the failure that a shrunk run must show; None where nothing is wrong with this one."""
    if not outcome.failed_by:
        return None
    violation = outcome.outcome.violation
    return Failure(
        invariant=None if violation is None else violation.invariant,
        kind=_kind(violation),
        is_early=not is_any and _early_us(outcome.outcome) is not None,
        checkers=outcome.failed_by if violation is None else (),
        is_any=is_any,
    )


def replay_for(failure: Failure) -> Replay:
    """Return a function that runs scenarios and looks for this failure."""

    def replay(scenario: Scenario) -> Finding | None:
        try:
            outcome = _run_until_healed(scenario) if failure.is_early else run(scenario)
        except (HarnessError, _TooLate):
            # It aims at a removed node, say; or nothing failed in time.
            return None
        unchecked = JudgedOutcome(outcome=outcome, checks=())
        result = judged(outcome) if failure.needs_checkers else unchecked
        return finding_of(result) if failure.is_in(result) else None

    return replay


def finding_of(outcome: JudgedOutcome) -> Finding:
    """Return the evidence of a failing run."""
    made = outcome.outcome
    return Finding(
        failed_by=outcome.failed_by,
        sentence=outcome.sentence or ", ".join(outcome.failed_by),
        happened=Happened(
            struck=frozenset(fault.index for fault in made.struck),
            performed=performed_by(made),
            failed_us=_early_us(made),
        ),
        trace_hash=made.trace_hash,
    )


def _run_until_healed(scenario: Scenario) -> SimulationOutcome:
    """Run a scenario until its faults end; raise _TooLate if nothing has failed by then."""

    def watch(world: SimulatedWorld) -> None:
        if world.now > scenario.load_us:
            raise _TooLate

    return simulate(scenario, simulated_system(scenario.system), watch=watch)


def _early_us(outcome: SimulationOutcome) -> int | None:
    """Return when an invariant was violated, where that was before everything healed."""
    violation = outcome.violation
    if violation is None or violation.time_us > outcome.scenario.load_us:
        return None
    return violation.time_us


def performed_by(outcome: SimulationOutcome) -> tuple[Pair, ...]:
    """Return the operations that clients began before everything healed, by their begin.

    A slot performs its operations in order, so the k-th of a slot is the k-th that the scenario
    keeps of it. Operations after the heal check progress, whatever the scenario keeps.
    """
    load = outcome.scenario.load
    kept: dict[int, list[int]] = {}
    for slot, n in sorted(load.kept or ()):
        kept.setdefault(slot, []).append(n)
    healed = [phase.events for phase in outcome.phases if phase.phase == "healed"]
    end = healed[0] if healed else len(outcome.events)
    counts: Counter[int] = Counter()
    performed: list[Pair] = []
    for event in outcome.events[:end]:
        if event.type != "invoke" or event.final:
            continue
        slot = event.process % load.clients
        count = counts[slot]
        counts[slot] += 1
        if load.kept is None:
            performed.append((slot, count))
        elif count < len(kept.get(slot, ())):
            performed.append((slot, kept[slot][count]))
    return tuple(performed)


def _kind(violation: Violation | None) -> str | None:
    return None if violation is None else violation.kind


def _digest(scenario: Scenario) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(scenario), digest_size=16).digest()
