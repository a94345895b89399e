"""Nothing is lost before every member that may hold it has answered a final read without it."""

from collections.abc import Callable
from itertools import permutations
from typing import Any

import msgspec
import pytest

from splitbrain.checker import bank, counter_bounds, queue_totals, set_full
from splitbrain.checker.evidence import Evidence, unread_reason
from splitbrain.checker.registry import checker_named
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.operations import Ending, operation

MEMBERS = frozenset({"n1", "n2", "n3"})
#: Makes the answer of one member, to its final read, that lacks or shows what was acknowledged.
Answer = Callable[..., PairedOperation]


def judged(name: str, *operations: PairedOperation, **fields: Any) -> CheckResult:
    given = {"members": MEMBERS, **fields}
    return checker_named(name)(Evidence(operations=operations, **given), Unlimited())


def _answers(f: str, lacks: Any, shows_all: Any) -> Answer:
    def answer(
        node: str | None, *, shows: bool, final: bool = True, start: int = 20, **fields: Any
    ) -> PairedOperation:
        result = shows_all if shows else lacks
        end = start + 5
        return operation(
            f, None, result, start=start, end=end, node=node, final=final, key="k", **fields
        )

    return answer


of_set, of_queue = _answers("read", [1], [1, 2]), _answers("drain", [], [2])
of_counter = _answers("read", 1, 3)
of_bank = _answers("read", {"a": 5, "b": 0}, {"a": 5, "b": 5})


def read(result: Any, *, f: str = "read", node: str = "n1", start: int = 20) -> PairedOperation:
    """A final answer."""
    end = start + 5
    return operation(f, None, result, start=start, end=end, node=node, final=True, key="k")


def done(f: str, argument: Any, start: int) -> PairedOperation:
    return operation(f, argument, start=start, end=start + 1, key="k", node="n2")


BEFORE: dict[str, tuple[PairedOperation, ...]] = {
    "set-full": (done("add", 1, 0), done("add", 2, 2)),
    "queue-totals": (done("enqueue", 2, 0),),
    "counter-bounds": (done("add", 1, 0), done("add", 2, 2)),
    "bank:total=10": (),
}
ANSWERS: dict[str, Answer] = {
    "set-full": of_set,
    "queue-totals": of_queue,
    "counter-bounds": of_counter,
    "bank:total=10": of_bank,
}
every_checker = pytest.mark.parametrize("name", list(ANSWERS))


def lacking(name: str, *nodes: str | None, **fields: Any) -> list[PairedOperation]:
    """Answers of these members, each without what was acknowledged."""
    numbers = {node: 30 + place for place, node in enumerate(("n1", "n2", "n3", "n4", None))}
    return [
        ANSWERS[name](node, shows=False, index=numbers[node], process=numbers[node], **fields)
        for node in nodes
    ]


def of_another_object(name: str) -> PairedOperation:
    empty: dict[str, Any] = {"counter-bounds": 0, "bank:total=10": {"a": 10}}
    shown = ANSWERS[name]("n3", shows=True)
    return msgspec.structs.replace(shown, key="other", result=empty.get(name, []))


#: Answers beside the final reads of n1 and n2, none of which reads n3.
READ_NOBODY: dict[str, Callable[[str], PairedOperation]] = {
    "of nobody knows whom": lambda name: lacking(name, None)[0],
    "of a node that is no member": lambda name: lacking(name, "n4")[0],
    "that failed": lambda name: lacking(name, "n3", outcome="fail")[0],
    "without an end": lambda name: lacking(name, "n3", outcome="info")[0],
    "during the load": lambda name: lacking(name, "n3", final=False, start=10)[0],
    "of another object": of_another_object,
}


@every_checker
def test_what_an_unread_member_may_hold_is_unknown(name: str) -> None:
    result = judged(name, *BEFORE[name], *lacking(name, "n1", "n2"))
    assert result.verdict is Verdict.UNKNOWN, result.reason
    assert "n3 was not read at the end and may hold it" in result.reason


@every_checker
@pytest.mark.parametrize("answer", READ_NOBODY)
def test_an_answer_that_reads_no_member_leaves_it_unknown(name: str, answer: str) -> None:
    beside = READ_NOBODY[answer](name)
    verdict = judged(name, *BEFORE[name], beside, *lacking(name, "n1", "n2")).verdict
    if (name, answer) == ("queue-totals", "without an end"):
        # An operation without an answer may have taken all there was.
        assert verdict is not Verdict.INVALID
    else:
        assert verdict is Verdict.UNKNOWN


@every_checker
def test_what_no_member_has_is_invalid(name: str) -> None:
    everybody = lacking(name, "n1", "n2", "n3")
    assert judged(name, *BEFORE[name], *everybody).verdict is Verdict.INVALID
    # Where one answer speaks for all, one is enough.
    alone = judged(name, *BEFORE[name], *everybody[:1], members=frozenset())
    assert alone.verdict is Verdict.INVALID


@every_checker
def test_final_reads_that_all_failed_prove_no_loss(name: str) -> None:
    during = ANSWERS[name]("n1", shows=False, final=False, start=10)
    failed = lacking(name, *sorted(MEMBERS), outcome="fail")
    assert judged(name, *BEFORE[name], during, *failed).verdict is Verdict.UNKNOWN


@every_checker
def test_what_all_show_is_valid_though_a_member_was_not_read(name: str) -> None:
    shown = [ANSWERS[name]("n1", shows=True, index=30), ANSWERS[name]("n2", shows=True, index=31)]
    if name == "queue-totals":
        shown = [shown[0], of_queue("n2", shows=False, index=31)]
    assert judged(name, *BEFORE[name], *shown).verdict is Verdict.VALID


# --- set-full: a member that lacks what others have ------------------------------------------


def finals(order: tuple[int, ...]) -> list[PairedOperation]:
    """Final reads one after the other: n3 lacks the element, n1 and n2 show it."""
    nodes = ("n1", "n2", "n3")
    return [
        of_set(node, shows=node != "n3", start=20 + 10 * place, index=20 + 10 * place)
        for node, place in zip(nodes, order, strict=True)
    ]


@pytest.mark.parametrize("name", ["set-full", "set-full:stale-reads-allowed"])
@pytest.mark.parametrize("members", [MEMBERS, frozenset[str]()])
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_what_one_member_lacks_is_told_so_in_whatever_order_it_was_read(
    name: str, members: frozenset[str], order: tuple[int, ...]
) -> None:
    result = judged(name, *BEFORE["set-full"], *finals(order), members=members)
    assert result.verdict is Verdict.INVALID
    (found,) = result.violations
    assert (found["kind"], found["absent_from"]) == ("missing-at-member", ["n3"])
    assert found["held_by"] == ["n1", "n2"]
    at = 20 + 10 * order[2]
    assert found["sentence"] == (
        "Element 2 of set k was acknowledged (index 2), is missing from the final read of index "
        f"{at} on n3, and n1 and n2 show it."
    )
    assert result.reason.startswith("1 missing for good at some members (1 at n3): ")
    assert (result.figures["stale"], result.figures["lost"]) == (0, 0)
    assert result.lists["missing-at-member"] == ({"key": "k", "value": 2, "nodes": ["n3"]},)


def test_a_member_that_caught_up_between_two_final_reads_is_stale() -> None:
    late = of_set("n3", shows=False, start=20), of_set("n3", shows=True, start=40)
    result = judged("set-full", *BEFORE["set-full"], of_set("n1", shows=True, start=30), *late)
    assert [found["kind"] for found in result.violations] == ["stale"]


def test_a_final_read_that_began_before_the_acknowledgement_need_not_show_it() -> None:
    early = operation("read", None, [1], start=2, end=9, node="n3", final=True, key="k")
    result = judged("set-full", *BEFORE["set-full"], early, of_set("n1", shows=True))
    assert result.verdict is Verdict.VALID


def test_two_members_that_lack_different_elements_are_each_told() -> None:
    adds = tuple(done("add", number, number) for number in range(4))
    reads = [
        read(shown, node=node)
        for node, shown in (("n1", [0, 1, 2, 3]), ("n2", [0, 1, 2]), ("n3", [0]))
    ]
    result = judged("set-full", *adds, *reads)
    assert "(1 at n2, 3 at n3)" in result.reason
    assert [found["absent_from"] for found in result.violations] == [["n3"], ["n3"], ["n2", "n3"]]


def test_before_the_nodes_agree_a_lagging_member_is_an_observation_where_stale_reads_are() -> None:
    reads = finals((0, 1, 2))
    for name, verdict in (
        ("set-full", Verdict.INVALID),
        ("set-full:stale-reads-allowed", Verdict.VALID),
    ):
        result = judged(name, *BEFORE["set-full"], *reads, converged=False)
        assert result.verdict is verdict
    assert [seen["kind"] for seen in result.observations] == ["missing-at-member"]


def test_what_is_wrong_for_certain_is_told_beside_what_is_not_known() -> None:
    result = judged("set-full", *BEFORE["set-full"], read([1, 9]))
    assert result.verdict is Verdict.INVALID
    assert [found["kind"] for found in result.violations] == ["phantom"]
    assert "n2, n3 were not read at the end and may hold it" in result.reason


def test_a_violation_found_before_the_budget_ended_stands() -> None:
    twice = operation("read", None, [1, 1], start=20, end=25, key="a")
    operations = (operation("add", 1, start=0, end=1, key="a"), twice)
    result = set_full.check((*operations, *BEFORE["set-full"], of_set("n1", shows=True)), Ending(1))
    assert result.verdict is Verdict.INVALID
    assert "Not finished: time budget of 1 s used up." in result.reason


# --- counters and banks: only what is wrong for good is excused --------------------------------


def test_a_counter_that_is_right_again_was_stale_whoever_was_read() -> None:
    stale = of_counter("n1", shows=False, final=False, start=10)
    right = of_counter("n1", shows=True, final=False, start=20)
    result = judged("counter-bounds", *BEFORE["counter-bounds"], stale, right)
    assert [found["kind"] for found in result.violations] == ["too-low"]


def test_a_right_final_read_of_any_member_excuses_none() -> None:
    answers = of_counter("n1", shows=True, index=20), of_counter("n2", shows=False, index=21)
    assert judged("counter-bounds", *BEFORE["counter-bounds"], *answers).verdict is Verdict.INVALID


@pytest.mark.parametrize("answer", [-1, 4, 99])
def test_an_answer_that_no_adds_can_make_is_wrong_whoever_was_not_read(answer: int) -> None:
    result = judged("counter-bounds", *BEFORE["counter-bounds"], read(answer))
    assert result.verdict is Verdict.INVALID


def test_a_decrement_may_stand_elsewhere_too() -> None:
    adds = done("add", 5, 0), done("add", -2, 2)
    assert judged("counter-bounds", *adds, read(5)).verdict is Verdict.UNKNOWN
    assert judged("counter-bounds", *adds, read(5), members=frozenset()).verdict is Verdict.INVALID


def test_a_bank_that_is_right_again_was_wrong_whoever_was_read() -> None:
    wrong = of_bank("n1", shows=False, final=False, start=10)
    right = of_bank("n1", shows=True, start=20)
    assert judged("bank:total=10", wrong, right).verdict is Verdict.INVALID


@pytest.mark.parametrize("balances", [{"a": 10, "b": None}, {"a": 12, "b": -2}, {"a": 4}])
def test_all_that_a_bank_lacks_may_stand_elsewhere(balances: dict[str, Any]) -> None:
    shown = read(balances)
    assert judged("bank:total=10", shown).verdict is Verdict.UNKNOWN
    assert judged("bank:total=10", shown, members=frozenset({"n1"})).verdict is Verdict.INVALID


# --- queues ----------------------------------------------------------------------------------


def test_592_messages_that_stand_on_another_member_are_not_lost() -> None:
    puts = [done("enqueue", number, 2 * number) for number in range(600)]
    taken = read(list(range(8)), f="drain", start=2_000)
    one = judged("queue-totals", *puts, taken)
    assert (one.verdict, one.figures["perhaps-elsewhere"]) == (Verdict.UNKNOWN, 592)
    others = [
        read(rest, f="drain", node=node, start=2_010)
        for node, rest in (("n2", list(range(8, 600))), ("n3", []))
    ]
    assert judged("queue-totals", *puts, taken, *others).verdict is Verdict.VALID
    others = lacking("queue-totals", "n2", "n3", start=2_010)
    result = judged("queue-totals", *puts, taken, *others)
    assert (result.verdict, result.figures["lost"]) == (Verdict.INVALID, 592)


def test_a_member_that_found_its_queue_empty_too_early_was_not_read() -> None:
    early = operation("drain", None, [], start=0, end=1, node="n3", final=True, key="k", index=9)
    put = done("enqueue", 2, 4)
    assert judged("queue-totals", put, early, *lacking("queue-totals", "n1", "n2")).verdict is (
        Verdict.UNKNOWN
    )


def test_duplicates_and_phantoms_need_no_other_member() -> None:
    result = judged("queue-totals", *BEFORE["queue-totals"], read([2, 2, 7], f="drain"))
    assert {found["kind"] for found in result.violations} == {"phantom", "duplicated"}


# --- mutants ---------------------------------------------------------------------------------


def verdicts() -> list[Verdict]:
    return [
        judged(name, *BEFORE[name], *lacking(name, *nodes)).verdict
        for name in ANSWERS
        for nodes in (("n1", "n2"), ("n1", "n2", "n3"))
    ]


EXPECTED = [Verdict.UNKNOWN, Verdict.INVALID] * len(ANSWERS)


def everybody_counts(members: Any, answers: Any) -> tuple[str, ...]:
    del answers
    return tuple(sorted(members))


@pytest.mark.parametrize("module", [set_full, queue_totals, counter_bounds, bank])
@pytest.mark.parametrize("mutant", [lambda *_: (), everybody_counts])
def test_a_mutant_gives_another_verdict(
    monkeypatch: pytest.MonkeyPatch, module: Any, mutant: Any
) -> None:
    assert verdicts() == EXPECTED
    monkeypatch.setattr(module, "unread", mutant)
    assert verdicts() != EXPECTED


def test_that_no_read_is_right_again_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        counter_bounds,
        "wrong_for_good",
        lambda reads, wrong: tuple(read for read in reads if read.index in wrong),
    )
    with pytest.raises(AssertionError):
        test_a_counter_that_is_right_again_was_stale_whoever_was_read()


def test_the_sentence_is_one_of_people() -> None:
    told = unread_reason("1 element is missing", {"n2"})
    assert told == "1 element is missing, and n2 was not read at the end and may hold it."
