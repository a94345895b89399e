"""Each way in which a seed could become two worlds is planted once, and its cure beside it."""

import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from tidy.exactness_rules import SIMULATED, check_exactness, runs_in_simulation

MODULE = PurePosixPath("simulation/world/world.py")
PROJECT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", SIMULATED)
def test_what_the_rules_are_for_is_there(name: str) -> None:
    """A module that has moved would be held to no rule any more, and nobody would know."""
    modules = [path.relative_to(PROJECT) for path in PROJECT.glob(f"{name}.py")]
    assert modules
    assert all(runs_in_simulation(PurePosixPath(module)) for module in modules)


def found(text: str, path: PurePosixPath = MODULE) -> str:
    return "\n".join(str(finding) for finding in check_exactness(path, text))


@pytest.mark.parametrize(
    "text",
    [
        "for x in {1, 2}: pass",
        "for x in set(things): pass",
        "for x in frozenset(things) - others: pass",
        "names = [x for x in {y for y in things}]",
        "names = {x: 1 for x in set(things)}",
        "names = list({1, 2})",
        "names = tuple(set(things))",
        "names = [*set(things)]",
        "first = next(iter({1, 2}))",
        "text = ', '.join({'a', 'b'})",
        "table = dict.fromkeys(set(things))",
        "text = ', '.join(x for x in {'a', 'b'})",
        "best = max(set(things), key=len)",
        "names = sorted(set(things), key=len)",
        "def f(things: set[int]):\n    for x in things: pass",
        "def f(things: 'frozenset[str] | None' = None):\n    return list(things)",
        "def f():\n    seen = set()\n    for x in seen: pass",
        "def f():\n    seen = {1}\n    return seen.pop()",
        "class A:\n    def f(self): self.a: set[int] = set()\n    def g(self): return [*self.a]",
        "ALL: Final = frozenset({1, 2})\ndef f():\n    for x in ALL: pass",
        "for x in {1}.union(others): pass",
    ],
)
def test_an_order_of_a_set_is_found(text: str) -> None:
    assert "order of a set" in found(text)


@pytest.mark.parametrize(
    "text",
    [
        "for x in sorted({2, 1}): pass",
        "names = sorted(set(things))",
        "is_in = any(x for x in {1, 2})",
        "count = len({1, 2}) + sum(x for x in set(things))",
        "print({x for x in set(things)})",
        "is_in = 1 in {1, 2}",
        "for x in [1, 2]: pass",
        "for x in {1: 2}: pass",
        "def f(things: list[int]):\n    return things.pop()",
        "def f(a: set[int]): return len(a)\ndef g(a: list[int]):\n    for x in a: pass",
        "class A:\n    def f(self, seen: dict[str, int]):\n        for x in seen: pass",
    ],
)
def test_what_does_not_depend_on_an_order_is_not_found(text: str) -> None:
    assert found(text) == ""


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("number = id(thing)", "id()"),
        ("number = hash('text')", "hash()"),
        ("names = sorted(things, key=id)", "id()"),
        ("number = stream.randint(1, 6)", "randint"),
        ("number = stream.choice(things)", "choice"),
        ("stream.shuffle(things)", "shuffle"),
        ("number = stream.sample(things, 2)", "sample"),
        ("number = stream.uniform(0, 1)", "uniform"),
        ("number = stream.gauss(0, 1)", "gauss"),
        ("number = stream.expovariate(2)", "expovariate"),
        ("number = random.seed(1)", "streams"),
        ("number = math.log(2)", "math.log"),
        ("number = math.exp(2)", "math.exp"),
        ("number = math.sin(2)", "math.sin"),
        ("number = 2 ** 0.5", "fractional"),
        ("now = time.monotonic_ns()", "clock"),
        ("now = datetime.now()", "clock"),
    ],
)
def test_what_differs_between_runs_versions_or_machines_is_found(text: str, word: str) -> None:
    assert word in found(text)


def test_what_is_exact_everywhere_is_not_found() -> None:
    text = (
        "number = stream.random()\n"
        "other = math.isqrt(17) + math.ceil(2.5) + 2**3\n"
        "def f(id: int) -> int:\n    return message.id + event.time\n"
    )
    assert found(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "CACHE = {}",
        "CACHE: dict[str, int] = {}",
        "CACHE: Final[dict[str, int]] = {}",
        "SEEN: Final = set()",
        "NAMES = ['a', 'b']",
        "NAMES = [x for x in things]",
        "NUMBERS: Final = itertools.count(1)",
        "QUEUE = deque()",
        "def f():\n    global counter\n    counter = 1",
    ],
)
def test_state_of_a_module_is_found(text: str) -> None:
    assert "keeps no state" in found(text)


@pytest.mark.parametrize(
    "text",
    [
        "__all__ = ['a']",
        "NAMES: Final = ['a', 'b']",
        "TABLE: Final[dict[str, int]] = {'a': 1}",
        "TABLE: Final = {name: 1 for name in things}",
        "KINDS = ('a', 'b')",
        "KINDS = frozenset({'a'})",
        "class A(Struct):\n    options: dict[str, int] = {}",
        "def f():\n    names = []",
    ],
)
def test_constants_and_records_are_not_found(text: str) -> None:
    assert found(text) == ""


@pytest.mark.parametrize(
    "text", ["import time", "from os import path", "import random", "import asyncio.events"]
)
def test_a_simulated_world_imports_nothing_of_the_machine(text: str) -> None:
    assert "a simulated world has no" in found(text)


def test_only_where_streams_are_made_random_is_imported() -> None:
    streams = PurePosixPath("simulation/world/streams.py")
    assert found("import random\nstream = random.Random('1/disk')", streams) == ""
    assert "streams" in found("import random\nx = random.randint(1, 2)", streams)


def test_modules_outside_of_simulation_are_left_alone() -> None:
    assert found("for x in {1, 2}: print(id(x))", PurePosixPath("harness/cli/main.py")) == ""


def test_every_module_of_simulation_that_a_seed_needs_is_watched() -> None:
    """A new module in one of the simulation's rooms must not slip by."""
    program = (
        "import sys, bench.trace_hashes\n"
        "ours = (name.removeprefix('splitbrain.') for name in sys.modules)\n"
        "print(*(name for name in ours if name.startswith(('harness.campaign.sweep.',"
        " 'simulation.disk.', 'simulation.kraft.', 'simulation.world.', 'nodes.quorum.',"
        " 'nodes.registers.'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=PROJECT, check=True, capture_output=True, text=True
    )
    names = done.stdout.split()
    assert len(names) > 30
    unwatched = [
        name
        for name in names
        if not runs_in_simulation(PurePosixPath(name.replace(".", "/") + ".py"))
    ]
    assert unwatched == []


@pytest.mark.parametrize("name", ["client_machine", "committed_log", "outcomes", "planted_bugs"])
def test_what_a_simulated_world_shares_with_a_machine_is_watched(name: str) -> None:
    path = PurePosixPath(f"systems/kraft/{name}.py")
    assert (PROJECT / path).is_file()
    assert runs_in_simulation(path)
