"""Sameness of failures, and facts of a scenario from its failing run."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.scenario import LoadOptions, Scenario, Violation
from splitbrain.harness.campaign.shrinking import exact_oracle
from splitbrain.harness.campaign.shrinking.exact_oracle import (
    ExactOracle,
    Failure,
    Finding,
    failure_of,
    finding_of,
    performed_by,
    replay_for,
)
from splitbrain.harness.folder.simulation_outcome import JudgedOutcome, SimulationOutcome
from splitbrain.history.course import Phase
from splitbrain.history.records import Event
from splitbrain.nemesis.search import SearchBudget
from tests.unit.harness import small_worlds

SCENARIO = Scenario(system="any", seed=1, load=LoadOptions(clients=3), load_us=1_000)


def outcome(**fields: Any) -> SimulationOutcome:
    return small_worlds.outcome(**{"scenario": SCENARIO, "phases": (), **fields})


def judged(
    invariant: str | None = None,
    problem: str = "",
    checkers: tuple[str, ...] = (),
    time_us: int = 500,
    kind: str | None = None,
) -> JudgedOutcome:
    violation = None if invariant is None else Violation(invariant, problem, time_us, 4, kind=kind)
    checks = tuple(CheckResult(name, Verdict.INVALID, "it lied") for name in checkers)
    return JudgedOutcome(outcome=outcome(violation=violation), checks=checks)


def same(was: JudgedOutcome, now: JudgedOutcome, *, is_any: bool = False) -> bool:
    failure = failure_of(was, is_any=is_any)
    assert failure is not None
    return failure.is_in(now)


def test_the_same_invariant_is_the_same_failure_whatever_else_is_found() -> None:
    was = judged("INV-04", "two lead", ("linearizability",))
    assert same(was, judged("INV-04", "three lead"))
    assert not same(was, judged("INV-05", "two lead"))
    assert not same(was, judged(None, checkers=("linearizability",)))
    assert not same(was, judged())


def test_one_of_the_same_checkers_is_the_same_failure() -> None:
    was = judged(checkers=("linearizability", "lost-commits"))
    assert same(was, judged(checkers=("lost-commits",)))
    assert not same(was, judged(checkers=("split-brain",)))
    assert not same(was, judged("INV-04"))


@pytest.mark.parametrize(
    ("invariant", "kind", "other"),
    [
        ("INV-31", "KeyError in nodes.a.b", "KeyError in nodes.a.c"),
        ("INV-31", "KeyError in nodes.a.b", "TypeError in nodes.a.b"),
        ("INV-14", "exit code 74", "exit code 75"),
    ],
)
def test_what_may_have_many_reasons_is_the_same_only_where_its_kind_is(
    invariant: str, kind: str, other: str
) -> None:
    was = judged(invariant, "it went wrong at 5", kind=kind)
    assert same(was, judged(invariant, "it went wrong at 6", kind=kind))
    assert not same(was, judged(invariant, "it went wrong at 5", kind=other))


def test_any_failure_is_any_failure_and_a_run_in_order_has_none() -> None:
    was = judged("INV-04")
    assert same(was, judged(checkers=("split-brain",)), is_any=True)
    assert not same(was, judged(), is_any=True)
    assert failure_of(judged()) is None
    assert failure_of(judged(), is_any=True) is None


def test_a_failure_before_the_heal_is_looked_for_before_it() -> None:
    early, late = failure_of(judged("INV-04")), failure_of(judged("INV-04", time_us=1_001))
    assert early is not None
    assert late is not None
    assert early.is_early
    assert not late.is_early
    assert finding_of(judged("INV-04")).happened.failed_us == 500
    assert finding_of(judged("INV-04", time_us=1_001)).happened.failed_us is None


def event(process: int, kind: str, *, final: bool = False) -> Event:
    return Event(0, 0, process, kind, "read", "r1", None, final=final)  # type: ignore[arg-type]


#: Slots 0, 1, 0 (a fresh process), 2, then one after the heal and a final read.
EVENTS = (
    event(0, "invoke"),
    event(1, "invoke"),
    event(0, "info"),
    event(3, "invoke"),
    event(2, "invoke"),
    event(3, "ok"),
    event(6, "invoke"),
    event(0, "invoke", final=True),
)
HEALED = (Phase(0, "healed", events=6),)


def test_operations_are_counted_by_slot_up_to_the_heal() -> None:
    assert performed_by(outcome(events=EVENTS, phases=HEALED)) == ((0, 0), (1, 0), (0, 1), (2, 0))
    assert performed_by(outcome(events=EVENTS)) == ((0, 0), (1, 0), (0, 1), (2, 0), (0, 2))


def test_operations_of_a_scenario_that_keeps_some_are_those() -> None:
    kept = ((1, 3), (0, 4), (2, 7), (0, 9), (2, 11))
    load = msgspec.structs.replace(SCENARIO.load, kept=kept)
    scenario = msgspec.structs.replace(SCENARIO, load=load)
    performed = performed_by(outcome(events=EVENTS, phases=HEALED, scenario=scenario))
    assert performed == ((0, 4), (1, 3), (0, 9), (2, 7))
    # Slot 0 does more than is kept because progress is demanded.
    assert performed_by(outcome(events=EVENTS, scenario=scenario)) == performed


def test_a_scenario_that_cannot_be_run_does_not_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(scenario: Scenario) -> SimulationOutcome:
        raise UsageError("there is no node n5", "Choose another")

    monkeypatch.setattr(exact_oracle, "run", run)
    assert replay_for(Failure(invariant="INV-04"))(SCENARIO) is None


def test_the_checkers_are_asked_only_where_they_had_found_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[SimulationOutcome] = []

    def looked_at(made: SimulationOutcome) -> JudgedOutcome:
        asked.append(made)
        return judged(checkers=("split-brain",))

    monkeypatch.setattr(exact_oracle, "run", lambda _: judged("INV-04").outcome)
    monkeypatch.setattr(exact_oracle, "judged", looked_at)
    assert replay_for(Failure(invariant="INV-04"))(SCENARIO) is not None
    assert not asked
    assert replay_for(Failure(checkers=("split-brain",)))(SCENARIO) is not None
    assert len(asked) == 1


def test_a_healthy_world_is_left_when_its_faults_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = Scenario(system="kraft", seed=3, load_us=50_000)
    ended: list[int] = []
    real = exact_oracle.simulate

    def simulate(*arguments: object, **named: object) -> SimulationOutcome:
        watch = named.pop("watch")

        def seen(world: object) -> None:
            ended.append(world.now)  # type: ignore[attr-defined]
            watch(world)  # type: ignore[operator]

        return real(*arguments, watch=seen, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(exact_oracle, "simulate", simulate)
    assert replay_for(Failure(invariant="INV-04", is_early=True))(scenario) is None
    assert ended[-2] <= 50_000 < ended[-1]


def found(scenario: Scenario) -> Finding:
    return finding_of(JudgedOutcome(outcome=outcome(scenario=scenario), checks=()))


class Asked:
    """An oracle whose worlds fail where this says so."""

    def __init__(self, fails: Callable[[Scenario], bool], seeds: tuple[int, ...] = ()) -> None:
        self._fails = fails
        self.ran: list[Scenario] = []
        self.told: list[tuple[Scenario, str, int]] = []
        self.budget = SearchBudget(5, 60.0, lambda: 0.0)
        self.oracle = ExactOracle(self.replay, self.budget, self.tell, seeds)

    def replay(self, scenario: Scenario) -> Finding | None:
        self.ran.append(scenario)
        return found(scenario) if self._fails(scenario) else None

    def tell(self, candidate: Scenario, step: str) -> None:
        self.told.append((candidate, step, self.budget.tries))


def test_no_world_is_run_twice_and_the_last_that_failed_is_the_best() -> None:
    asked = Asked(lambda scenario: scenario.nodes > 3)
    larger, smaller = (msgspec.structs.replace(SCENARIO, nodes=nodes) for nodes in (5, 4))
    asked.oracle.saw(larger, found(larger))
    for _ in range(2):
        assert asked.oracle.fails(smaller, "nodes")
        assert not asked.oracle.fails(SCENARIO, "nodes")
        assert asked.oracle.best == smaller
    assert asked.ran == [smaller, SCENARIO]
    assert asked.told == [(smaller, "nodes", 0), (SCENARIO, "nodes", 1)]
    assert asked.oracle.fails(larger, "as it was")
    assert asked.budget.tries == 2
    assert asked.oracle.happened == found(larger).happened


def test_one_of_a_few_worlds_is_enough_and_none_shows_what_the_others_do() -> None:
    asked = Asked(lambda scenario: scenario.seed == 2, seeds=(7, 1, 7, 2))
    assert asked.oracle.fails(SCENARIO, "faults")
    assert [scenario.seed for scenario in asked.ran] == [7, 1, 2]
    assert asked.oracle.best == msgspec.structs.replace(SCENARIO, seed=2)
    assert asked.oracle.happened is None
    # Five worlds may be run, and three were.
    assert not asked.oracle.fails(msgspec.structs.replace(SCENARIO, nodes=5), "nodes")
    assert len(asked.ran) == asked.budget.tries == 5


def test_alike_is_whatever_the_same_checkers_found_and_no_other() -> None:
    alike = Failure(checkers=("lost-commits", "split-brain"), is_alike=True)
    assert alike.is_in(judged(checkers=("split-brain", "lost-commits")))
    assert not alike.is_in(judged(checkers=("split-brain",)))
    assert not alike.is_in(judged("INV-04", checkers=("split-brain", "lost-commits")))
