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

from tidy.tree import Breach, Finding, findings_in

#: Modules in which a simulated world lives: folders with all that they hold, and single modules.
SIMULATED: Final = (
    "contracts/draws", "nodes/metadata/*", "nodes/quorum/*",
    "nodes/registers/*", "nodes/storage/*", "nodes/wire/*", "nodes/server/broker/*",
    "nodes/server/controller/*", "nodes/server/host/*", "nodes/server/registers/*",
    "nodes/server/start/*", "nodes/transport/client_protocol",
    "nodes/transport/kafka_codec", "simulation/disk/*", "simulation/kraft/*",
    "simulation/kraft/metadata/*", "simulation/world/*",
    "systems/kraft/client_machine", "systems/kraft/committed_log", "systems/kraft/outcomes",
    "systems/kraft/planted_bugs", "harness/campaign/sweep/swarm",
    "harness/folder/simulation_outcome", "harness/run/load/reading",
    "harness/run/load/routes", "harness/run/load/seat", "harness/run/load/timetable",
    "harness/run/world/acting", "harness/run/world/fault_driver",
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

_SET_TYPES = frozenset({"AbstractSet", "FrozenSet", "MutableSet", "Set", "frozenset", "set"})
_SET_CALLS = frozenset({"frozenset", "set"})
_SET_METHODS = frozenset({"difference", "intersection", "symmetric_difference", "union"})
#: Calls whose result does not depend on the order of what they are given.
_ORDERLESS = frozenset({"all", "any", "frozenset", "len", "max", "min", "set", "sorted", "sum"})

_Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def runs_in_simulation(path: PurePosixPath) -> bool:
    """Whether this module is part of simulated worlds."""
    return _SIMULATED.fullmatch(str(path)) is not None


def check_exactness(path: PurePosixPath, text: str) -> list[Finding]:
    """Everything in a simulated module that could make a seed two worlds."""
    if not runs_in_simulation(path):
        return []
    tree = ast.parse(text)
    found = [*_orders(tree), *_calls(tree), *_module_state(tree)]
    if _NOTHING_ELSE.match(str(path)):
        found += _imports(path, tree)
    return findings_in(path, found)


# --- names of sets


class SetNames:
    """Names of a module that are sets, as far as its text says.

    Names and attributes that are annotated as sets or given one; a name counts in its function, an
    attribute in its module. Must rather miss a set than call a list one.
    """

    def __init__(self, tree: ast.Module) -> None:
        #: Generator expressions that are given to what does not care for order.
        self.orderless: list[ast.AST] = []
        self._scopes: dict[ast.AST, _Scope] = {}
        self._names: dict[_Scope, list[str]] = {tree: []}
        self._attributes: list[str] = []
        self._enter(tree, tree)
        for node, scope in list(self._scopes.items()):
            self._note(node, scope)

    def has(self, node: ast.expr) -> bool:
        """Whether this name or attribute is a set."""
        match node:
            case ast.Name(id=name):
                scope = self._scopes.get(node)
                module = next(iter(self._names))
                return (scope is not None and name in self._names[scope]) or (
                    name in self._names[module] and name.isupper()
                )
            case ast.Attribute(attr=name):
                return name in self._attributes
            case _:
                return False

    def _enter(self, node: ast.AST, scope: _Scope) -> None:
        for child in ast.iter_child_nodes(node):
            self._scopes[child] = scope
            inner = scope
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                inner = child
                self._names[child] = list(_parameters(child))
            self._enter(child, inner)

    def _note(self, node: ast.AST, scope: _Scope) -> None:
        match node:
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                if is_set_type(annotation) or (value is not None and is_set(value, self)):
                    self._add(target, scope)
            case ast.Assign(targets=targets, value=value) if is_set(value, self):
                for target in targets:
                    self._add(target, scope)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=keywords):
                # With a key there are ties, and the first one wins.
                if name in _ORDERLESS and not keywords:
                    self.orderless += arguments
            case _:
                return

    def _add(self, target: ast.expr, scope: _Scope) -> None:
        match target:
            case ast.Name(id=name):
                self._names[scope].append(name)
            case ast.Attribute(attr=name):
                self._attributes.append(name)
            case _:
                return


def is_set(node: ast.expr, names: SetNames) -> bool:
    """Whether an expression is a set, as far as the text says."""
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in _SET_CALLS
        case ast.Call(func=ast.Attribute(value=receiver, attr=name)):
            return name in _SET_METHODS and is_set(receiver, names)
        case ast.BinOp(op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor()):
            return is_set(node.left, names) or is_set(node.right, names)
        case ast.IfExp():
            return is_set(node.body, names) or is_set(node.orelse, names)
        case ast.Name() | ast.Attribute():
            return names.has(node)
        case _:
            return False


def is_set_type(annotation: ast.expr) -> bool:
    """Whether an annotation says set; also as text, within Final and beside None."""
    match annotation:
        case ast.Constant(value=str() as text):
            return is_set_type(ast.parse(text, mode="eval").body)
        case ast.Subscript(value=ast.Name(id="Final" | "ClassVar"), slice=inner):
            return is_set_type(inner)
        case ast.Subscript(value=outer):
            return is_set_type(outer)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return is_set_type(left) or is_set_type(right)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in _SET_TYPES
        case _:
            return False


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Iterator[str]:
    given = function.args
    for parameter in (*given.posonlyargs, *given.args, *given.kwonlyargs):
        if parameter.annotation is not None and is_set_type(parameter.annotation):
            yield parameter.arg


# --- orders of sets


def _orders(tree: ast.Module) -> Iterator[Breach]:
    names = SetNames(tree)
    for node in ast.walk(tree):
        for walked in _walked_in_order(node, names):
            if is_set(walked, names):
                yield walked.lineno, "the order of a set is not the seed's; sort it, or use a dict"


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


def _calls(tree: ast.Module) -> Iterator[Breach]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="id" | "hash" as name)):
                yield node.lineno, f"{name}() differs from run to run"
            case ast.keyword(arg="key", value=ast.Name(id="id" | "hash" as name) as value):
                yield value.lineno, f"{name}() differs from run to run"
            case ast.Attribute(value=ast.Name(id="random"), attr=attribute) if (
                attribute not in _RANDOM
            ):
                yield node.lineno, "draw from the world's streams, not from the module"
            case ast.Call(func=ast.Attribute(attr=attribute)) if attribute in _DRAWS:
                yield node.lineno, f"{attribute}() may draw otherwise elsewhere; use random() alone"
            case ast.Attribute(value=ast.Name(id="math"), attr=attribute):
                if attribute not in _EXACT_MATH:
                    yield node.lineno, f"math.{attribute} is the C library's, which differ"
            case ast.Attribute(value=ast.Name(id="time" | "datetime" as module)):
                yield node.lineno, f"a world has its own clock; {module} is the machine's"
            case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=float())):
                yield node.lineno, "a fractional power is the C library's, which differ"
            case _:
                continue


# --- state that outlives a run


def _module_state(tree: ast.Module) -> Iterator[Breach]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield node.lineno, "a module keeps no state; hand it to a run's own object"
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
            yield (
                statement.lineno,
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


def _imports(path: PurePosixPath, tree: ast.Module) -> Iterator[Breach]:
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
                yield node.lineno, f"a simulated world has no {root}; ask the world"
