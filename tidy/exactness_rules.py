"""Rules for what runs inside a simulation: nothing in it may depend on more than the seed.

A seed would make two worlds by an order that the interpreter chooses (of a set), a value that it
chooses (``id``, ``hash``), a method of ``random`` other than ``random()`` (versions differ), a
logarithm of the C library (machines differ), or state of a module (it outlives a run). Judged from
the text alone: a set that is handed over under a name without annotation is not seen; the trace
hashes are for those. Source: issue 5, item 2.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from tidy.set_names import SetNames, is_set
from tidy.tree import Finding

#: Modules in which a simulated world lives: folders with all that they hold, and single modules.
SIMULATED: Final = (
    "contracts/draws", "nodes/metadata/*", "nodes/quorum/*",
    "nodes/registers/*", "nodes/storage/*", "nodes/wire/*", "nodes/server/broker/*",
    "nodes/server/controller/*", "nodes/server/host/*", "nodes/server/registers/*",
    "nodes/server/start/*", "nodes/transport/back_off", "nodes/transport/client_protocol",
    "nodes/transport/kafka_codec", "simulation/disk/*", "simulation/kraft/*", "simulation/world/*",
    "systems/kraft/client_machine", "systems/kraft/committed_log", "systems/kraft/outcomes",
    "systems/kraft/planted_bugs", "harness/campaign/sweep/swarm",
    "harness/folder/simulation_outcome", "harness/run/processes", "harness/run/load/reading",
    "harness/run/load/routes", "harness/run/load/seat", "harness/run/load/timetable",
    "harness/run/world/acting", "harness/run/world/fault_driver", "harness/run/world/happenings",
    "harness/run/world/load", "harness/run/world/recovery",
    "harness/run/world/simulate", "nemesis/*", "nemesis/families/*", "nodes/transport/link_machine",
    "workloads/*",
)  # fmt: skip
_SIMULATED: Final = re.compile(
    "|".join(re.escape(name).replace(r"\*", r"\w+") + r"\.py" for name in SIMULATED)
)
#: Of those, the ones that have nothing else to do: they may not even import what tempts.
_NOTHING_ELSE: Final = re.compile(r"(simulation|harness/run/world|harness/campaign/sweep)/")
#: The one place where random streams are made.
_STREAMS = PurePosixPath("simulation/world/streams.py")
_MACHINE = frozenset({
    "asyncio", "concurrent", "datetime", "gc", "locale", "multiprocessing", "os", "platform",
    "queue", "secrets", "select", "selectors", "signal", "socket", "ssl", "subprocess", "tempfile",
    "threading", "time", "uuid", "uvloop", "weakref",
})  # fmt: skip
#: Methods of ``random.Random`` whose results may change between versions, or use the C library.
_DRAWS = frozenset({
    "betavariate", "binomialvariate", "choice", "choices", "expovariate", "gammavariate", "gauss",
    "getrandbits", "lognormvariate", "normalvariate", "paretovariate", "randbytes", "randint",
    "randrange", "sample", "shuffle", "triangular", "uniform", "vonmisesvariate",
    "weibullvariate",
})  # fmt: skip
#: Names of a random source, or of the module where streams are made.
_RANDOM = frozenset({"Random", "random"})
#: Members of ``math`` that are exact, or correctly rounded, on every machine.
_EXACT_MATH = frozenset({
    "ceil", "comb", "copysign", "factorial", "floor", "gcd", "inf", "isfinite", "isinf", "isnan",
    "isqrt", "lcm", "nan", "perm", "prod", "sqrt", "trunc",
})  # fmt: skip
#: Calls that make something that changes later.
_CHANGEABLE = frozenset({
    "Counter", "OrderedDict", "bytearray", "count", "cycle", "defaultdict", "deque", "dict", "iter",
    "list", "set",
})  # fmt: skip
#: Calls that keep the order of what they are given.
_ORDERED = frozenset({
    "bytes", "deque", "dict", "enumerate", "filter", "fromkeys", "iter", "join", "list", "map",
    "next", "reversed", "tuple", "zip",
})  # fmt: skip


def runs_in_simulation(path: PurePosixPath) -> bool:
    """Whether this module is part of simulated worlds."""
    return _SIMULATED.fullmatch(str(path)) is not None


def check_exactness(path: PurePosixPath, text: str) -> list[Finding]:
    """Everything in a simulated module that could make a seed two worlds."""
    if not runs_in_simulation(path):
        return []
    tree = ast.parse(text)
    found = [*_orders(path, tree), *_calls(path, tree), *_module_state(path, tree)]
    if _NOTHING_ELSE.match(str(path)):
        found += _imports(path, tree)
    return found


def _finding(path: PurePosixPath, node: ast.expr | ast.stmt, sentence: str) -> Finding:
    return Finding(str(path), node.lineno, sentence)


# --- orders of sets


def _orders(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    names = SetNames(tree)
    for node in ast.walk(tree):
        for walked in _walked_in_order(node, names):
            if is_set(walked, names):
                yield _finding(
                    path, walked, "the order of a set is not the seed's; sort it, or use a dict"
                )


def _walked_in_order(node: ast.AST, names: SetNames) -> Iterator[ast.expr]:
    """Yield the expressions through which this node goes in their own order."""
    match node:
        case ast.For() | ast.AsyncFor():
            yield node.iter
        case ast.ListComp() | ast.DictComp():
            yield from (generator.iter for generator in node.generators)
        case ast.GeneratorExp() if node not in names.orderless:
            yield from (generator.iter for generator in node.generators)
        case ast.Starred():
            yield node.value
        case ast.Call(func=ast.Attribute(value=receiver, attr="pop"), args=[]):
            yield receiver
        case ast.Call(func=function, args=arguments):
            if _called(function) in _ORDERED:
                yield from arguments
            elif _called(function) in {"max", "min", "sorted"} and node.keywords:
                # With a key there are ties, and the first one wins.
                yield from arguments[:1]
        case _:
            return


def _called(function: ast.expr) -> str | None:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return None


# --- calls


def _calls(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="id" | "hash" as name)):
                yield _finding(path, node, f"{name}() differs from run to run")
            case ast.keyword(arg="key", value=ast.Name(id="id" | "hash" as name) as value):
                yield _finding(path, value, f"{name}() differs from run to run")
            case ast.Attribute(value=ast.Name(id="random"), attr=attribute) if (
                attribute not in _RANDOM
            ):
                yield _finding(path, node, "draw from the world's streams, not from the module")
            case ast.Call(func=ast.Attribute(attr=attribute)) if attribute in _DRAWS:
                yield _finding(
                    path, node, f"{attribute}() may draw otherwise elsewhere; use random() alone"
                )
            case ast.Attribute(value=ast.Name(id="math"), attr=attribute):
                if attribute not in _EXACT_MATH:
                    yield _finding(path, node, f"math.{attribute} is the C library's, which differ")
            case ast.Attribute(value=ast.Name(id="time" | "datetime" as module)):
                yield _finding(path, node, f"a world has its own clock; {module} is the machine's")
            case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=float())):
                yield _finding(path, node, "a fractional power is the C library's, which differ")
            case _:
                continue


# --- state that outlives a run


def _module_state(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield _finding(path, node, "a module keeps no state; hand it to a run's own object")
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                continue
            case ast.Assign(value=value):
                is_final = False
            case ast.AnnAssign(value=ast.expr() as value, annotation=annotation):
                is_final = "Final" in ast.unparse(annotation)
            case _:
                continue
        if _is_state(value, is_final=is_final):
            yield _finding(
                path,
                statement,
                "a module keeps no state; make it Final and fill it here, or move it",
            )


def _is_state(value: ast.expr, *, is_final: bool) -> bool:
    """Whether it can change later; a table that is Final and full is taken for constant."""
    match value:
        case ast.List(elts=elements) | ast.Set(elts=elements):
            return not (is_final and elements)
        case ast.Dict(keys=keys):
            return not (is_final and keys)
        case ast.ListComp() | ast.SetComp() | ast.DictComp():
            return not is_final
        case ast.Call(func=function, args=arguments) if _called(function) in _CHANGEABLE:
            return not (is_final and arguments) or _called(function) in {"count", "cycle", "iter"}
        case _:
            return False


def _imports(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    forbidden = _MACHINE if path == _STREAMS else _MACHINE | {"random"}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                roots = [alias.name.partition(".")[0] for alias in aliases]
            case ast.ImportFrom(module=str() as module, level=0):
                roots = [module.partition(".")[0]]
            case _:
                continue
        for root in roots:
            if root in forbidden:
                yield Finding(
                    str(path), node.lineno, f"a simulated world has no {root}; ask the world"
                )
