"""Parts, budgets, verdicts and evidence of the linearizability checker as a whole."""

import pickle
import time
from typing import Any

import msgspec
import pytest

from bench.histories import HistoryOptions, generate
from splitbrain.checker.linearizability import portfolio
from splitbrain.checker.linearizability.check import check, check_part
from splitbrain.checker.linearizability.methods.search import POLL_INTERVAL, Search
from splitbrain.checker.linearizability.part.outcome import order_of
from splitbrain.checker.linearizability.part.parts import PartResult, combine, split
from splitbrain.checker.linearizability.part.problem import Problem
from splitbrain.checker.models.registry import model_named
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.contracts.errors import UsageError
from splitbrain.history.records import PairedOperation
from tests.unit.checker.operations import Ending, operation

STALE_READ = (
    operation("write", 1, start=0, end=2, process=1),
    operation("write", 2, start=3, end=5, process=1),
    operation("read", None, 1, start=6, end=8, process=2, node="n3"),
)


def judged(*operations: PairedOperation, model: str = "cas-register") -> CheckResult:
    return check(operations, model, Unlimited())


def test_a_history_without_operations_is_valid() -> None:
    assert judged().verdict is Verdict.VALID


def test_a_stale_read_is_told_with_its_node_its_key_and_the_write_it_shows() -> None:
    result = judged(*STALE_READ)
    assert result.verdict is Verdict.INVALID
    (violation,) = result.violations
    assert violation["operation"]["index"] == 6
    assert "read -> 1 by process 2 on n3 (index 6) of key a" in violation["sentence"]
    assert "leaves 2" in violation["sentence"]
    assert "write 1 (index 0, process 1)" in violation["sentence"]
    assert [source["index"] for source in violation["sources"]] == [0]
    assert violation["final_states"] == [2]
    assert violation["longest_orders"][0]["last"] == [0, 3]


def test_an_answer_without_any_source_is_told_so() -> None:
    result = judged(
        operation("write", 1, start=0, end=2), operation("read", None, 9, start=3, end=4)
    )
    assert "no operation invoked by then can lead to this answer" in result.reason


def test_an_answer_that_only_the_beginning_allows_is_told_so() -> None:
    result = judged(
        operation("write", 1, start=0, end=2), operation("read", None, None, start=3, end=4)
    )
    assert "only the state before all operations allows this answer" in result.reason
    assert "It contradicts write 1 (index 0" in result.reason


def test_the_core_of_a_stale_read_among_many_operations_is_the_read_and_the_two_writes() -> None:
    noise = [
        operation("read", None, None, start=-1000 + 3 * n, end=-999 + 3 * n, process=7)
        for n in range(300)
    ]
    later = [operation("read", None, 2, start=20 + 3 * n, end=21 + 3 * n) for n in range(50)]
    result = judged(*noise, *STALE_READ, *later)
    violation = result.violations[0]
    assert violation["core_minimal"]
    assert violation["core_at_any_time"]
    assert [member["index"] for member in violation["core"]] == [0, 3, 6]
    assert violation["sentence"].endswith(
        "It contradicts write 1 (index 0, process 1) and write 2 (index 3, process 1), taken "
        "together, whatever the rest answered and whenever it took effect."
    )
    assert {node["id"] for node in violation["graph"]["nodes"]} == {0, 3, 6}


def test_a_refused_cas_that_should_have_succeeded_is_a_violation() -> None:
    result = judged(
        operation("write", 1, start=0, end=2),
        operation("cas", [1, 2], [1, 2, False], start=3, end=4),
    )
    assert result.verdict is Verdict.INVALID
    assert "cas 1 to 2 (refused)" in result.reason


def test_the_result_is_json_ready() -> None:
    result = judged(*STALE_READ)
    assert msgspec.json.decode(msgspec.json.encode(result), type=CheckResult) == result


def test_operations_that_certainly_did_not_happen_are_left_out() -> None:
    assert judged(
        operation("write", 1, start=0, end=2),
        operation("write", 2, start=3, end=4, outcome="fail"),
        operation("read", None, 1, start=5, end=6),
    ).verdict is (Verdict.VALID)


def test_keys_are_parts_and_one_bad_key_does_not_hide_the_others() -> None:
    other = [operation("read", None, None, start=n, end=n + 1, key="b") for n in range(10, 13)]
    parts = split([*STALE_READ, *other], model_named("cas-register"))
    assert [(part.key, len(part.operations)) for part in parts] == [("a", 3), ("b", 3)]
    result = judged(*STALE_READ, *other)
    assert result.figures["parts"] == 2
    assert result.figures["parts-invalid"] == 1
    assert [violation["key"] for violation in result.violations] == ["a"]


def test_parts_and_their_results_cross_process_borders() -> None:
    (part,) = split(STALE_READ, model_named("cas-register"))
    assert pickle.loads(pickle.dumps(part)) == part
    result = check_part(part, "cas-register", Unlimited())
    assert pickle.loads(pickle.dumps(result)) == result
    assert msgspec.json.decode(msgspec.json.encode(result), type=PartResult) == result


def test_the_largest_part_comes_first() -> None:
    operations = [operation("read", None, None, start=n, end=n, key="ab"[n > 0]) for n in range(4)]
    assert [part.key for part in split(operations, model_named("register"))] == ["b", "a"]


def test_an_operation_that_the_model_does_not_know_is_refused() -> None:
    with pytest.raises(UsageError, match="knows no operation 'cas'"):
        judged(operation("cas", [1, 2], [1, 2, True], start=0, end=1), model="register")


def test_a_model_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(UsageError, match="cas-register"):
        judged(*STALE_READ, model="nonsense")


def test_an_ended_budget_is_unknown_with_its_reason_never_valid() -> None:
    (part,) = split(STALE_READ, model_named("cas-register"))
    result = check_part(part, "cas-register", Ending())
    assert result.verdict is Verdict.UNKNOWN
    assert "time budget of 1 s used up" in result.reason


def test_the_budget_is_asked_while_the_search_runs() -> None:
    hard = generate(HistoryOptions(operations=4 * POLL_INTERVAL, clients=10))
    (part,) = split(hard, model_named("cas-register"))
    result = check_part(part, "cas-register", Ending(2))
    assert result.verdict is Verdict.UNKNOWN
    assert "time budget of 1 s used up" in result.reason
    assert result.figures["configurations"] == 2 * POLL_INTERVAL


def test_a_violation_stands_when_the_budget_ends_during_its_explanation() -> None:
    (part,) = split(STALE_READ, model_named("cas-register"))
    result = check_part(part, "cas-register", Ending(1))
    assert result.verdict is Verdict.INVALID
    assert result.violation is not None
    assert not result.violation["core_minimal"]


def part_result(verdict: Verdict, **fields: Any) -> PartResult:
    return PartResult("k", verdict, "a", "because.", 1, **fields)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], Verdict.VALID),
        ([Verdict.VALID, Verdict.VALID], Verdict.VALID),
        ([Verdict.VALID, Verdict.UNKNOWN], Verdict.UNKNOWN),
        ([Verdict.UNKNOWN, Verdict.INVALID, Verdict.VALID], Verdict.INVALID),
    ],
)
def test_the_worst_part_decides(verdicts: list[Verdict], expected: Verdict) -> None:
    result = combine([part_result(verdict) for verdict in verdicts], "register")
    assert result.verdict is expected
    assert result.checker == "linearizability:register"


def test_a_long_wide_history_needs_no_recursion() -> None:
    result = check(generate(HistoryOptions(20_000, 10)), "cas-register", Unlimited())
    assert result.verdict is Verdict.VALID


@pytest.mark.parametrize("info", [0.0, 0.05])
def test_the_planted_read_is_the_one_that_is_named(info: float) -> None:
    named = 0
    for seed in range(10):
        options = HistoryOptions(150, 5, info=info, violation=True, seed=seed)
        history = generate(options)
        result = check(history, "cas-register", Unlimited())
        assert result.verdict is Verdict.INVALID
        (planted,) = [o for o in history if o.result == "never written"]
        core = result.violations[0]["core"]
        named += [member["index"] for member in core] == [planted.index]
    # Nothing wrote the value, so the read contradicts everything by itself.
    assert named == 10


def test_a_mutant_that_calls_gave_up_valid_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class GivesUpQuietly(portfolio.Search):
        def run(self) -> Any:
            outcome = super().run()
            gave_up = outcome.verdict is Verdict.UNKNOWN
            return msgspec.structs.replace(outcome, verdict=Verdict.VALID) if gave_up else outcome

    monkeypatch.setattr(portfolio, "Search", GivesUpQuietly)
    with pytest.raises(AssertionError):
        test_the_budget_is_asked_while_the_search_runs()


def test_one_part_is_not_spoken_of_and_several_are_explained() -> None:
    def told(*sizes: int) -> str:
        parts = [
            PartResult(str(key), Verdict.VALID, "exact", "It fits.", size, {})
            for key, size in enumerate(sizes)
        ]
        return combine(parts, "register").reason

    assert told(1) == "The only operation can be put in one order."
    assert told(2729) == "All 2,729 operations can be put in one order."
    assert told(2000, 729) == (
        "All 2,729 operations of 2 parts can be put in one order each; "
        "a part is what is done to one key."
    )


def test_a_longest_order_is_told_in_linear_time() -> None:
    """Four times as long takes no more than ten times as long; squared it would be sixteen."""

    def seconds(count: int) -> float:
        history = generate(HistoryOptions(count, 10, mix="register"))
        problem = Problem(history, model_named("cas-register"))
        outcome = Search(problem, Unlimited()).run()
        assert outcome.decisions is not None
        began = time.process_time()
        assert len(order_of(problem, outcome.decisions)) == count
        return time.process_time() - began

    short = min(seconds(10_000) for _ in range(3))
    assert min(seconds(40_000) for _ in range(2)) < 10 * short
