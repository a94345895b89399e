"""The compiled search decides what the search in Python decides; each mutant of it does not."""

import os
from random import Random
from typing import Any, Final

import pytest

from bench.histories import HistoryOptions, generate, with_stale_read
from splitbrain.checker.linearizability import portfolio
from splitbrain.checker.linearizability.kernel import compiled_search
from splitbrain.checker.linearizability.kernel.columns import columns_of
from splitbrain.checker.linearizability.kernel.compiled_search import (
    CompiledModel,
    CompiledSearch,
    DoesNotFit,
)
from splitbrain.checker.linearizability.methods.search import DEAD_ENDS_MAX, Search
from splitbrain.checker.linearizability.part.outcome import EXACT, SWEEP, Outcome, order_of
from splitbrain.checker.linearizability.part.parts import Part
from splitbrain.checker.linearizability.part.problem import Problem, Transitions
from splitbrain.checker.linearizability.part_source import ObjectSource
from splitbrain.checker.models.model import Model
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Budget, Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.brute_force import assert_legal, linearizable
from tests.unit.checker.operations import Ending
from tests.unit.checker.operations import operation as op
from tests.unit.checker.small_histories import random_history

HISTORIES = int(os.environ.get("SPLITBRAIN_BRUTE_FORCE_HISTORIES", "150"))
UNLIMITED: Final = Unlimited()
#: Into the depth or rank by rank, without rule 7 and with it.
WAYS: list[dict[str, Any]] = [
    {"guided": guided, "by_rank": by_rank} for by_rank in (False, True) for guided in (False, True)
]


def search_of(
    operations: list[PairedOperation],
    model: Model,
    *,
    unlimited: bool = False,
    budget: Budget = UNLIMITED,
    **options: Any,
) -> CompiledSearch:
    problem = Problem(operations, model)
    columns = columns_of(operations, problem.call_by_place)
    compiled = CompiledModel(model, problem.calls, problem.transitions)
    places = range(len(operations)) if unlimited else ()
    return CompiledSearch(columns, compiled, budget, unlimited=places, **options)


def outcome_of(operations: list[PairedOperation], model: Model, **options: Any) -> Outcome:
    return search_of(operations, model, **options).run()


@pytest.mark.parametrize("model", sorted(MODELS))
def test_it_agrees_with_brute_force_whichever_way_it_goes(model: str) -> None:
    random = Random(f"compiled {model}")
    for number in range(HISTORIES):
        operations = random_history(random, model)
        expected = Verdict.VALID if linearizable(operations, model) else Verdict.INVALID
        for way in WAYS:
            outcome = outcome_of(operations, MODELS[model], **way)
            assert outcome.verdict is expected, f"{way}, history {number}: {operations}"


def stops(outcome: Outcome, transitions: Transitions) -> set[tuple[int, object]]:
    """The furthest rank and the states met there."""
    return {(end.rank, transitions.states[end.state or 0]) for end in outcome.dead_ends}


@pytest.mark.parametrize("model", sorted(MODELS))
def test_it_comes_as_far_as_the_search_in_python_whichever_way_it_goes(model: str) -> None:
    random = Random(f"step by step {model}")
    for _ in range(max(60, HISTORIES // 10)):
        operations = random_history(random, model, 24)
        problem = Problem(operations, MODELS[model])
        in_python = Search(problem, Unlimited())
        reference = in_python.run()
        if reference.verdict is Verdict.INVALID:
            reference = in_python.furthest(reference)
        expected = stops(reference, problem.transitions)
        for way in WAYS:
            search = search_of(operations, MODELS[model], **way)
            outcome = search.run()
            assert outcome.verdict is reference.verdict, way
            if outcome.verdict is Verdict.INVALID:
                outcome = search.furthest(outcome)
            # The order in which ways are tried may differ; how far they come may not.
            found = stops(outcome, search.model.transitions)
            if max(len(found), len(expected)) < DEAD_ENDS_MAX:
                assert found == expected, way
            else:
                assert {rank for rank, _ in found} == {rank for rank, _ in expected}, way


@pytest.mark.parametrize("model", sorted(MODELS))
def test_its_order_is_legal_and_true_to_time_whichever_way_it_goes(model: str) -> None:
    random = Random(f"compiled order {model}")
    for _ in range(max(60, HISTORIES // 10)):
        operations = random_history(random, model, 16)
        problem = Problem(operations, MODELS[model])
        for way in WAYS:
            decisions = outcome_of(operations, MODELS[model], **way).decisions
            if decisions is not None:
                places = order_of(problem, decisions)
                assert_legal([operations[place] for place in places], operations, model)


@pytest.mark.parametrize("info", [0.0, 0.2])
def test_memory_grows_while_it_searches(info: float) -> None:
    operations = generate(HistoryOptions(1500, 12, info=info, violation=True))
    outcome = search_of(operations, MODELS["cas-register"], unlimited=info > 0).run()
    assert outcome.verdict is Verdict.INVALID
    assert outcome.remembered > 5000


def test_a_sweep_forgets_what_nothing_leads_on_from() -> None:
    operations = generate(HistoryOptions(4000, 20, violation=True))
    model = MODELS["cas-register"]
    into_the_depth = outcome_of(operations, model)
    by_rank = outcome_of(operations, model, by_rank=True)
    assert (into_the_depth.verdict, by_rank.verdict) == (Verdict.INVALID, Verdict.INVALID)
    assert by_rank.configurations > 10 * by_rank.remembered
    assert by_rank.remembered < into_the_depth.remembered / 5
    # The way to its end was not forgotten with the rest.
    problem = Problem(operations, model)
    for end in by_rank.dead_ends:
        placed = order_of(problem, end.decisions)
        assert set(problem.place_by_rank[: end.rank]) <= set(placed)


def test_a_sweep_refutes_what_is_too_wide_for_the_depth() -> None:
    options = HistoryOptions(1000, 50, values=100)
    operations = with_stale_read(Random(0), generate(options))
    outcomes = {
        by_rank: outcome_of(
            operations,
            MODELS["cas-register"],
            configurations_max=600_000,
            guided=True,
            by_rank=by_rank,
        )
        for by_rank in (False, True)
    }
    assert outcomes[False].verdict is Verdict.UNKNOWN
    assert outcomes[True].verdict is Verdict.INVALID


def test_where_the_longest_orders_take_too_long_the_verdict_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    operations = with_stale_read(Random(0), generate(HistoryOptions(1000, 20, values=100)))
    search = search_of(operations, MODELS["cas-register"], guided=True)
    refuted = search.run()
    monkeypatch.setattr(compiled_search, "FURTHEST_FIRST", 0)
    monkeypatch.setattr(compiled_search, "FURTHEST_TIMES", 0.1)
    told = search.furthest(refuted)
    (end,) = told.dead_ends
    assert (told.verdict, told.exhausted, end.state) == (Verdict.INVALID, False, None)
    problem = Problem(operations, MODELS["cas-register"])
    culprit = operations[problem.place_by_rank[end.rank]]
    before = [o for o in operations if o.start <= (culprit.end or 0)]
    assert outcome_of(before, MODELS["cas-register"], by_rank=True).verdict is Verdict.INVALID


def test_rule_7_decides_what_the_other_rules_do_not() -> None:
    operations = generate(HistoryOptions(1000, 50, values=100))
    verdicts = [
        outcome_of(
            operations, MODELS["cas-register"], configurations_max=200_000, guided=guided
        ).verdict
        for guided in (False, True)
    ]
    assert verdicts == [Verdict.UNKNOWN, Verdict.VALID]


@pytest.mark.parametrize(
    ("options", "stale", "decided_by"),
    [
        (HistoryOptions(1000, 30), False, EXACT),
        (HistoryOptions(1000, 30), True, SWEEP),
        (HistoryOptions(60, 5, info=0.1, violation=True), False, EXACT),
    ],
)
def test_depth_and_width_take_turns(
    options: HistoryOptions, stale: bool, decided_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations = generate(options)
    if stale:
        operations = with_stale_read(Random("turns"), operations)
    # A turn too short for either.
    monkeypatch.setattr(portfolio, "FIRST_TURN", 100)
    source = ObjectSource(Part(None, tuple(operations)), MODELS["cas-register"])
    algorithm, outcome = portfolio.search_in_turns(source, Unlimited())
    assert algorithm == decided_by
    invalid = stale or options.violation
    assert outcome.verdict is (Verdict.INVALID if invalid else Verdict.VALID)
    if invalid:
        search = search_of(operations, MODELS["cas-register"])
        expected = stops(search.furthest(search.run()), search.model.transitions)
        assert stops(outcome, source.transitions) == expected


def test_rule_8_decides_what_the_other_rules_do_not() -> None:
    operations = generate(HistoryOptions(300, 8, values=40, info=0.3, seed=1))
    decided: list[Verdict] = []
    for sparing in (False, True):
        search = search_of(operations, MODELS["cas-register"], configurations_max=20_000)
        search._begin(search._layout._replace(sparing=sparing))
        decided.append(search.run().verdict)
    assert decided == [Verdict.UNKNOWN, Verdict.VALID]


def test_what_is_open_without_limit_is_used_without_limit() -> None:
    history = [
        op("write", 1, start=0, end=None, process=9, index=0),
        *(
            op(f, value, result, start=start, end=start + 1, process=0, index=start)
            for start, f, value, result in (
                (1, "read", None, 1),
                (3, "write", 2, 2),
                (5, "read", None, 1),
                (7, "write", 2, 2),
                (9, "read", None, 1),
            )
        ),
    ]
    model = MODELS["register"]
    assert outcome_of(history, model).verdict is Verdict.INVALID
    assert search_of(history, model, unlimited=True).run().verdict is Verdict.VALID


def test_a_part_that_is_too_wide_is_refused() -> None:
    wide = [op("write", n, start=n, end=1000 + n, process=n, index=n) for n in range(63)]
    with pytest.raises(DoesNotFit):
        search_of(wide, MODELS["register"])
    assert outcome_of(wide[:62], MODELS["register"]).verdict is Verdict.VALID


def test_it_gives_up_after_as_many_configurations_as_allowed() -> None:
    operations = generate(HistoryOptions(2000, 10))
    outcome = outcome_of(operations, MODELS["cas-register"], configurations_max=100)
    assert outcome.verdict is Verdict.UNKNOWN
    assert outcome.reason == "no answer after 100 configurations"


def test_it_asks_the_budget() -> None:
    operations = generate(HistoryOptions(3000, 20, info=0.1, violation=True))
    outcome = outcome_of(operations, MODELS["cas-register"], budget=Ending())
    assert (outcome.verdict, outcome.reason) == (Verdict.UNKNOWN, "time budget of 1 s used up")


def test_states_that_others_numbered_have_rows_too() -> None:
    model = MODELS["cas-register"]
    history = [op("write", n, start=10 * n, end=10 * n + 5, process=0) for n in range(200)]
    problem = Problem(history, model)
    for call in range(len(problem.calls)):
        problem.transitions.step(0, call)
    compiled = CompiledModel(model, problem.calls, problem.transitions)
    columns = columns_of(history, problem.call_by_place)
    assert len(problem.transitions.states) > 200
    # The last state is met first: a table that grows by one step would be too short.
    late = CompiledSearch(columns, compiled, Unlimited())
    compiled.answer(0, len(problem.calls) - 1)
    assert len(compiled.table) > 200
    assert late.run().verdict is Verdict.VALID
