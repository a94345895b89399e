"""Runs are judged by what their workload says of its functions, whatever these are called."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from splitbrain.contracts.errors import AdapterError
from splitbrain.contracts.names import NO_EPOCH, NodeName
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.system import Route
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.folder.results import Results
from splitbrain.harness.judge.outcome_counts import acknowledged_epochs
from splitbrain.harness.report.publishing import judge_and_publish
from splitbrain.harness.run.clients import SlotClient
from splitbrain.harness.run.load.seat import Books, Processes
from splitbrain.harness.run.traffic import Traffic
from splitbrain.history.fault_windows import longest_unavailability_ns
from splitbrain.history.functions import Function, Functions, Refusal, effect_of, was_refused
from splitbrain.history.plan import decode_plan, encode_plan
from splitbrain.history.records import PairedOperation
from splitbrain.history.run_folder import RunFolder
from tests.declared_runs import QUEUE, TRANSACTIONS, Line, as_queue, as_transaction, folder_of
from tests.unit.checker.operations import operation
from tests.unit.harness.ended_operations import Recorded

pytestmark = pytest.mark.usefixtures("in_process")


def judged(folder: RunFolder) -> Results:
    return judge_and_publish(folder.root, analyze=False)


@pytest.mark.parametrize(
    ("change", "functions"), [(as_queue, QUEUE), (as_transaction, TRANSACTIONS)]
)
def test_functions_that_no_list_knows_are_judged_as_their_workload_declares(
    tmp_path: Path, change: Callable[[Line], Line], functions: Functions
) -> None:
    found = judged(folder_of(tmp_path / "run", change, functions))
    assert (found.exit_code, found.vacuous) == (0, ()), (found.checkers, found.problems)
    lost = next(check for check in found.checkers if check.checker == "lost-commits")
    assert lost.figures["held"] == lost.figures["acknowledged"] > 100


@pytest.mark.parametrize(
    ("change", "functions"), [(as_queue, QUEUE), (as_transaction, TRANSACTIONS)]
)
def test_what_is_declared_to_leave_a_record_can_be_lost(
    tmp_path: Path, change: Callable[[Line], Line], functions: Functions
) -> None:
    found = judged(folder_of(tmp_path / "run", change, functions, flaw="lost-commit"))
    lost = next(check for check in found.checkers if check.checker == "lost-commits")
    assert (found.exit_code, lost.figures["lost"]) == (1, 1)


def only(effect: Any) -> Function:
    return Function(effect)


@pytest.mark.parametrize(
    ("change", "functions", "name", "mutant"),
    [
        (as_queue, QUEUE, "peek", only("records")),
        (as_queue, QUEUE, "push", only("reads")),
        (as_queue, QUEUE, "push", only("changes")),
        (as_queue, QUEUE, "pull", only("records")),
        (as_queue, QUEUE, "pull", only("reads")),
        (as_transaction, TRANSACTIONS, "atomically", only("records")),
        (as_transaction, TRANSACTIONS, "atomically", only("reads")),
        (as_transaction, TRANSACTIONS, "atomically", only("changes")),
    ],
)
def test_a_mutant_of_a_declaration_is_judged_otherwise(
    tmp_path: Path,
    change: Callable[[Line], Line],
    functions: Functions,
    name: str,
    mutant: Function,
) -> None:
    def told(declared: Functions) -> tuple[Any, ...]:
        found = judged(folder_of(tmp_path / str(id(declared)), change, declared))
        lost = next(check for check in found.checkers if check.checker == "lost-commits")
        return found.exit_code, lost.figures["acknowledged"], found.vacuous

    assert told({**functions, name: mutant}) != told(dict(functions))


def test_where_nobody_declares_what_functions_do_that_is_said(tmp_path: Path) -> None:
    found = judged(folder_of(tmp_path / "run", as_queue, None))
    (reason,) = found.vacuous
    assert reason == (
        "Nothing tells whether peek, pull, push changed anything after the last heal: "
        "the plan does not declare what they do."
    )


def test_refused_ones_are_counted_as_such(tmp_path: Path) -> None:
    found = judged(folder_of(tmp_path / "run", as_queue, QUEUE))
    assert found.operations["pull"].refused > 10
    assert found.operations["peek"].refused == found.operations["push"].refused == 0


def test_a_function_that_only_reads_does_not_end_an_unavailability() -> None:
    def done(f: str, at: int) -> PairedOperation:
        return PairedOperation(at, at, f, "q", None, None, "ok", at, at)

    operations = [done("push", 0), done("peek", 4), done("push", 9)]
    assert longest_unavailability_ns(operations, QUEUE) == 9
    assert longest_unavailability_ns(operations, {**QUEUE, "peek": only("changes")}) == 5


class Unanswered:
    """A client that gets no answer and does not know what its operations do."""

    closed_count = 0

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        return Completion("info", error="connection-lost")

    async def close(self) -> None:
        Unanswered.closed_count += 1


@pytest.mark.parametrize(
    ("functions", "operation", "outcome"),
    [
        (QUEUE, Operation("peek", "q", None), "fail"),
        (QUEUE, Operation("push", "q", 1), "info"),
        (QUEUE, Operation("pull", "q", None), "info"),
        (QUEUE, Operation("undeclared", "q", None), "info"),
        (TRANSACTIONS, Operation("atomically", None, [["get", "x", None]]), "fail"),
        (TRANSACTIONS, Operation("atomically", None, []), "fail"),
        (
            TRANSACTIONS,
            Operation("atomically", None, [["get", "x", None], ["put", "x", 1]]),
            "info",
        ),
        (TRANSACTIONS, Operation("atomically", None, None), "info"),
        (TRANSACTIONS, Operation("atomically", None, [[]]), "info"),
        (TRANSACTIONS, Operation("atomically", None, "get"), "info"),
    ],
)
def test_without_an_answer_only_what_reads_certainly_did_nothing(
    functions: Functions, operation: Operation, outcome: str
) -> None:
    recorded = Recorded()
    books = Books(recorded, Traffic(), Processes(1), functions, 1_000_000)
    closed = Unanswered.closed_count

    async def perform() -> list[Completion]:
        client = SlotClient(
            *(0, Route("pinned", NodeName("n1"))),
            open_client=lambda _: Unanswered(),
            books=books,
            stop=Stop(),
        )
        return [await client.perform(operation) for _ in range(2)]

    first, _ = asyncio.run(perform())
    assert first.type == outcome
    # A late answer must never meet a later operation, whatever the history says of it.
    assert recorded.events[0].process != recorded.events[2].process
    assert recorded.events[-1].type == outcome
    assert Unanswered.closed_count == closed + 2


class Answers(Unanswered):
    """Answers everything with one completion, or with something else."""

    def __init__(self, given: Any) -> None:
        self._given = given

    async def invoke(self, operation: Operation, timeout_s: float) -> Any:
        return self._given


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Completion("ok"), "perform the operation take .*its ok has no value"),
        (
            None,
            r"Answers.invoke, test_workload_functions.py, line \d+\): it returned NoneType, not",
        ),
        (("ok", 1), "returned tuple, not Completion"),
    ],
)
def test_a_client_that_answers_otherwise_than_it_must_ends_the_run(given: Any, said: str) -> None:
    functions = {"take": Function("records", Refusal()), "put": Function("records")}
    books = Books(Recorded(), Traffic(), Processes(1), functions, 1_000_000)
    stop = Stop()

    async def perform(operation: str, given: Any) -> Completion:
        client = SlotClient(
            *(0, Route("pinned", NodeName("n1"))),
            open_client=lambda _: Answers(given),
            books=books,
            stop=stop,
        )
        return await client.perform(Operation(operation, "k", 1))

    assert asyncio.run(perform("put", Completion("ok"))).type == "ok"
    assert asyncio.run(perform("take", Completion("ok", False))).type == "ok"
    assert stop.failure is None
    assert asyncio.run(perform("take", given)).error == "client-crashed"
    assert isinstance(stop.failure, AdapterError)
    assert re.search(said, str(stop.failure))


@pytest.mark.parametrize(
    ("refusal", "result", "refused"),
    [
        (Refusal(), False, True),
        (Refusal(), 0, False),
        (Refusal(), None, False),
        (Refusal(None, (None,)), None, True),
        (Refusal(2), [1, 2, False], True),
        (Refusal(2), [1, 2], False),
        (Refusal(2), (1, 2, False), True),
        (Refusal(2), {"2": False}, False),
        (Refusal(0, ("empty",)), ["empty"], True),
        (Refusal(0, ("empty",)), "empty", False),
    ],
)
def test_an_answer_says_by_its_shape_that_nothing_was_done(
    refusal: Refusal, result: object, refused: bool
) -> None:
    functions = {"take": Function("records", refusal)}
    assert was_refused(functions, "take", result) is refused
    assert effect_of(functions, "take", None, result) == ("reads" if refused else "records")


def test_a_plan_keeps_the_declaration(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run", as_queue, QUEUE)
    plan = decode_plan(folder.plan.read_bytes())
    assert plan.functions == QUEUE
    assert decode_plan(encode_plan(plan)) == plan


def test_positions_without_epochs_tell_of_no_epoch() -> None:
    placed = [
        operation("write", 1, start=0, end=1, position=(NO_EPOCH, 7)),
        operation("write", 2, start=2, end=3, position=(4, 8)),
    ]
    assert acknowledged_epochs(placed) == {4}
    assert acknowledged_epochs(placed[:1]) == set()
