"""Making a failing plan small, with oracles that say what its runs would."""

import random
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.contracts.budget import Unlimited
from splitbrain.contracts.fault import Awaited, Fault
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import LoadOptions, Scenario
from splitbrain.nemesis.kinds import fault_kind
from splitbrain.nemesis.plan_file import from_file_faults, parse_plan_file
from splitbrain.nemesis.plan_text import fits, plan_toml
from splitbrain.nemesis.run_steps import with_faults
from splitbrain.nemesis.search import Repetition
from splitbrain.nemesis.shrinking import shrink

KINDS = ("partition", "kill", "pause", "one-way-in", "power", "delay")


def fault(index: int, at_ms: int, duration_ms: int = 3000, **more: object) -> Fault:
    kind = str(more.pop("kind", KINDS[index % len(KINDS)]))
    target = str(more.pop("target", fault_kind(kind).first_target))
    return Fault(index, kind, target, at_ms * 1000, duration_ms * 1000, draw=index, **more)  # type: ignore[arg-type]


def plan(faults: int = 6, **fields: object) -> Scenario:
    usual = Scenario(
        system="any",
        seed=1,
        faults=tuple(fault(index, 5000 + 9000 * index) for index in range(faults)),
        load_us=60_000_000,
        nodes=5,
        load=LoadOptions(clients=10, rate=200.0),
    )
    return msgspec.structs.replace(usual, **fields)


class Oracle:
    """Remembers what it was asked, and of what it said that it fails."""

    def __init__(self, fails: Callable[[Scenario], bool], questions_max: int = 10_000) -> None:
        self._fails, self._questions_max = fails, questions_max
        self.asked: list[Scenario] = []
        self.accepted: list[Scenario] = []
        self.steps: list[str] = []
        self.happened = None

    def fails(self, plan: Scenario, step: str) -> bool:
        self.asked.append(plan)
        self.steps.append(step)
        fails = self._fails(plan)
        if fails:
            self.accepted.append(plan)
        return fails

    def exhausted(self) -> str | None:
        return "used up" if len(self.asked) >= self._questions_max else None


def needs(*indexes: int) -> Callable[[Scenario], bool]:
    """It takes all of these faults, and nothing else."""
    return lambda plan: {*indexes} <= {one.index for one in plan.faults}


def test_what_it_takes_is_left_and_everything_else_is_small() -> None:
    oracle = Oracle(needs(3))
    shrunk = shrink(plan(), oracle, Unlimited())
    (left,) = shrunk.plan.faults
    assert shrunk.is_minimal
    assert (left.index, left.at_us, left.duration_us) == (3, 2_000_000, 1_000_000)
    assert (shrunk.plan.load_us, shrunk.plan.nodes, shrunk.plan.load.clients) == (7_000_000, 3, 2)
    # Each client is as busy as before.
    assert shrunk.plan.load.rate == 40.0
    assert shrunk.plan in oracle.accepted


def test_two_faults_keep_their_order_and_their_calm() -> None:
    shrunk = shrink(plan(), Oracle(needs(1, 4)), Unlimited())
    first, second = shrunk.plan.faults
    assert (first.index, second.index) == (1, 4)
    assert second.at_us - first.at_us - first.duration_us == 2_000_000


def test_a_failure_that_takes_no_fault_is_left_without_any() -> None:
    shrunk = shrink(plan(), Oracle(lambda _: True), Unlimited())
    assert shrunk.plan.faults == ()
    assert shrunk.plan.load_us <= 15_000_000
    assert shrunk.is_minimal


def test_what_a_smaller_plan_lacks_stays() -> None:
    """It takes long faults, five nodes, ten clients and all of the calm."""
    start = plan()

    def fails(plan: Scenario) -> bool:
        is_whole = (plan.nodes, plan.load.clients) == (5, 10)
        return is_whole and needs(2)(plan) and plan.faults[0].at_us >= 23_000_000

    oracle = Oracle(fails)
    shrunk = shrink(start, oracle, Unlimited())
    assert [one.index for one in shrunk.plan.faults] == [2]
    # Each question costs runs: where no other fault goes, nothing else is asked about again.
    assert oracle.steps[-1] == "faults"
    assert (shrunk.plan.nodes, shrunk.plan.load.clients) == (5, 10)
    assert shrunk.plan.faults[0].at_us == 23_000_000
    # The load ends as long after the last fault as it did before.
    assert shrunk.plan.load_us < 60_000_000


def test_the_load_ends_soon_after_the_last_fault_that_is_left() -> None:
    start = plan()
    tail_us = 60_000_000 - 53_000_000
    assert with_faults(start, start.faults[:1]).load_us == 8_000_000 + tail_us
    assert with_faults(start, start.faults[-1:]).load_us == 60_000_000


def test_a_fault_that_waits_has_the_time_to_come() -> None:
    waiting = fault(0, 4000, when=Awaited("leads", count=2, timeout_us=9_000_000, delay_us=500_000))
    start = plan(faults=0)
    start = msgspec.structs.replace(start, faults=(waiting, fault(1, 30_000)))
    left = with_faults(start, (waiting,))
    assert left.load_us == 1000 * (4000 + 9000 + 500 + 3000 + 60_000 - 33_000)


def test_nodes_that_a_fault_needs_stay() -> None:
    named = plan(faults=0)
    named = msgspec.structs.replace(named, faults=(fault(0, 4000, target="n5", kind="kill"),))
    assert shrink(named, Oracle(needs(0)), Unlimited()).plan.nodes == 5
    ring = msgspec.structs.replace(named, faults=(fault(0, 4000, kind="majorities-ring"),))
    assert shrink(ring, Oracle(needs(0)), Unlimited()).plan.nodes == 4


def test_a_budget_ends_the_search_with_the_best_so_far() -> None:
    for questions in range(1, 12):
        oracle = Oracle(needs(3), questions)
        shrunk = shrink(plan(), oracle, oracle)
        assert len(oracle.asked) <= questions
        assert not shrunk.is_minimal or [one.index for one in shrunk.plan.faults] == [3]
        assert shrunk.plan == (oracle.accepted[-1] if oracle.accepted else plan())


@given(
    seed=st.integers(0, 1 << 30),
    faults=st.integers(0, 6),
    chance=st.floats(0.0, 1.0),
    questions=st.integers(0, 60),
)
def test_it_ends_and_never_gives_back_what_was_not_said_to_fail(
    seed: int, faults: int, chance: float, questions: int
) -> None:
    """However the oracle lies or wavers: it answers by lot, and another way each time."""
    lot = random.Random(seed)
    oracle = Oracle(lambda _: lot.random() < chance, questions)
    start = plan(faults)
    shrunk = shrink(start, oracle, oracle)
    assert shrunk.plan == start or shrunk.plan in oracle.accepted
    assert len(oracle.asked) <= questions
    assert all(fits(plan) for plan in oracle.asked)
    assert all(plan.load_us <= start.load_us for plan in oracle.asked)


@pytest.mark.parametrize("seed", range(5))
def test_a_wavering_oracle_comes_to_an_end_without_a_budget(seed: int) -> None:
    lot = random.Random(seed)
    oracle = Oracle(lambda plan: needs(2)(plan) and lot.random() < 0.7)
    shrunk = shrink(plan(), oracle, Unlimited())
    assert needs(2)(shrunk.plan)
    assert len(oracle.asked) < 200


def test_a_plan_is_written_as_the_file_that_reads_back_the_same() -> None:
    nodes = tuple(NodeName(f"n{number}") for number in range(1, 6))
    faults = (
        fault(0, 2000, options={"beside": 1}),
        msgspec.structs.replace(fault(1, 2500, 4000), at_us=2_500_250),
        fault(2, 9000, options={"nodes": ["n1", "n2"], "beyond_promise": True}),
        fault(3, 9000, when=Awaited("commits", "leader", 5, 3, 20_500, 900_000), target="there"),
        fault(5, 20_000, options={"delay_ms": 300, "direction": "in"}),
    )
    text = plan_toml(faults, ["two lines", "of comment"])
    assert text.startswith("# two lines\n# of comment\noverlap = 2\n")
    read = parse_plan_file(text.encode(), "plan.toml")
    back = from_file_faults(read.plan.faults, nodes, 60_000, overlap=read.plan.overlap)
    without_index = [msgspec.structs.replace(one, index=0) for one in back]
    assert without_index == [msgspec.structs.replace(one, index=0) for one in faults]


@pytest.mark.parametrize(
    ("tries", "at_least", "answers", "settled_after"),
    [
        (3, 2, [True, True], 2),
        (3, 2, [False, False], 2),
        (3, 2, [True, False, True], 3),
        (3, 2, [True, False, False], 3),
        (5, 1, [False, False, True], 3),
        (5, 5, [True, True, False], 3),
        (1, 1, [False], 1),
    ],
)
def test_a_question_is_settled_as_soon_as_it_can_be(
    tries: int, at_least: int, answers: list[bool], settled_after: int
) -> None:
    asking = Repetition(tries, at_least)
    settled = [asking.settled(sum(answers[:tried]), tried) for tried in range(len(answers) + 1)]
    assert settled[:settled_after] == [None] * settled_after
    assert settled[settled_after] is (sum(answers) >= at_least)
