import ast

import msgspec
import pytest

from bench.mutant_child import StageOrder, StageResult
from bench.mutant_reach import NOTE, Reach, places_of
from bench.mutant_rooms import ROOT, files_of
from bench.mutant_sites import mutants_of
from bench.mutants import main, run_stage

FILE = "nodes/server/start/none.py"
SOURCE = '''
LIMIT = 3

def sign(number: int) -> int:
    """Return -1 or 1."""
    if number < 0:
        return -1
    elif number > LIMIT:
        number = 9
    else:
        for each in range(number):
            number += each
    return 1

def greet(names: list[str]) -> None:
    """Say hello."""
    names.append("hello")
    names.append("you")
'''
RULE = "nodes/controller/brokers/fencing.py"


def ran(source: str, call: str) -> set[str]:
    """Lines that a call of marked code comes to."""
    reach = Reach()
    names: dict[str, object] = {NOTE: reach.fresh.add}
    exec(compile(reach.marked(ast.parse(source), FILE), FILE, "exec"), names)
    reach.ran(0)
    assert reach.first == {}
    eval(call, names)
    reach.ran(1)
    assert set(reach.first.values()) == {1}
    return {place.split(":")[1] for place in reach.first}


@pytest.mark.parametrize(
    ("call", "lines"),
    [
        ("sign(-2)", {"6", "7"}),
        ("sign(5)", {"6", "8", "9", "13"}),
        ("sign(1)", {"6", "8", "11", "12", "13"}),
        ("greet([])", {"17", "18"}),
    ],
)
def test_the_statements_that_a_call_comes_to_are_noted(call: str, lines: set[str]) -> None:
    assert ran(SOURCE, call) == lines


def test_marked_code_does_what_it_did_before() -> None:
    names: dict[str, object] = {NOTE: Reach().fresh.add}
    exec(compile(Reach().marked(ast.parse(SOURCE), FILE), FILE, "exec"), names)
    assert eval("[sign(-2), sign(5), sign.__doc__]", names) == [-1, 1, "Return -1 or 1."]


def test_a_world_is_the_first_to_come_to_a_statement_once() -> None:
    reach = Reach()
    names: dict[str, object] = {NOTE: reach.fresh.add}
    exec(compile(reach.marked(ast.parse(SOURCE), FILE), FILE, "exec"), names)
    for seed, call in ((4, "sign(-2)"), (5, "sign(5)")):
        eval(call, names)
        reach.ran(seed)
    assert reach.first[f"{FILE}:6:4"] == 4
    assert reach.first[f"{FILE}:13:4"] == 5


def test_a_mutant_has_the_place_of_the_statement_that_it_changes() -> None:
    places = {
        (mutant.before, mutant.operator): place
        for mutant, place in zip(mutants_of(SOURCE, FILE), places_of(SOURCE, FILE), strict=True)
    }
    assert places["LIMIT = 3", "constant"] is None
    assert places["if number < 0:", "comparison"] == f"{FILE}:6:4"
    assert places["number += each", "arithmetic"] == f"{FILE}:12:12"
    # A function that does nothing any more is met at its first statement.
    assert places["def greet(names: list[str]) -> None:", "return"] == f"{FILE}:17:4"


def test_every_place_of_a_mutant_is_one_that_is_noted() -> None:
    """A place that is never noted would be taken for a statement that no world comes to."""
    for file in files_of("above"):
        source = (ROOT / file).read_text()
        reach = Reach()
        reach.marked(ast.parse(source), file)
        reach.fresh.update(range(len(reach._places)))
        reach.ran(0)
        places = set(places_of(source, file))
        assert places - {None} <= reach.first.keys()


def test_mutants_are_run_from_the_first_world_on_that_comes_to_them() -> None:
    source = (ROOT / RULE).read_text()
    names = [mutant.id for mutant in mutants_of(source, RULE)]
    chosen = dict(zip(names, places_of(source, RULE), strict=True))
    places = sorted({place for place in chosen.values() if place is not None})
    late, never = places[0], places[1]
    first_seeds = {place: 3 if place == late else 0 for place in places if place != never}
    hashes = tuple(f"{seed:02}" for seed in range(5))
    shown: dict[str, StageOrder] = {}

    def run(order: StageOrder) -> StageResult:
        if order.mutant is None:
            return StageResult(killed_by=None, cpu_s=1.0, hashes=hashes, first_seeds=first_seeds)
        shown[order.mutant.id] = order
        return StageResult(killed_by="seed 4: INV-62")

    command = ["--room", "above", "--files", RULE, "--count", "1000", "--seeds", "0:5"]
    assert main(command, run) == 0
    assert set(shown) == {name for name, place in chosen.items() if place != never}
    for name, order in shown.items():
        is_late = chosen[name] == late
        assert order.first_seed == (3 if is_late else 0)
        assert order.known_hashes == (hashes[:3] if is_late else ())


@pytest.mark.slow
def test_worlds_have_the_same_traces_where_statements_are_noted() -> None:
    order = StageOrder(
        mutant=None, files=(RULE,), state_machine="registers", end_seed=1, cpu_s_max=300
    )
    control = run_stage(order)
    assert control.killed_by is None
    assert control.first_seeds is not None
    mutant = mutants_of((ROOT / RULE).read_text(), RULE)[0]
    # Worlds of registers have no brokers to fence.
    assert places_of((ROOT / RULE).read_text(), RULE)[0] not in control.first_seeds
    assert run_stage(msgspec.structs.replace(order, mutant=mutant)).traces == control.traces
