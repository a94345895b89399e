"""Rules about Python modules that no linter has: sizes, and what rooms promise."""

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from tidy.tree import Finding

MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
#: A literal of at least so many lines is a table and not counted as code.
TABLE_LINES_MIN = 5
#: What a longer module's docstring must say.
LENGTH_REASON = "longer than 400 lines because"

#: In ``nodes`` only these may hold coroutines.
_ASYNC_ROOMS = frozenset({"server", "transport"})

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def check_python(path: PurePosixPath, text: str) -> list[Finding]:
    """Sizes, docstrings, coroutines in pure rooms, tests that are skipped."""
    tree = ast.parse(text)
    found = [*_module(path, text, tree), *_functions(path, tree)]
    if path.parts[0] == "nodes" and path.parts[1] not in _ASYNC_ROOMS:
        found += _coroutines(path, tree)
    if path.parts[0] == "tests":
        found += _skips(path, tree)
    return found


def _module(path: PurePosixPath, text: str, tree: ast.Module) -> Iterator[Finding]:
    docstring = ast.get_docstring(tree)
    if docstring is None and path.parts[0] != "tests":
        yield Finding(str(path), 1, "a module says its purpose in a docstring")
    lines = len(text.splitlines())
    if lines > MODULE_LINES_MAX and LENGTH_REASON not in " ".join((docstring or "").split()):
        yield Finding(
            str(path),
            0,
            f"{lines} lines; split it, or say in the docstring {LENGTH_REASON!r} and why",
        )


def _functions(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = code_lines(node)
            if lines > FUNCTION_LINES_MAX:
                yield Finding(
                    str(path),
                    node.lineno,
                    f"{node.name} has {lines} lines, at most {FUNCTION_LINES_MAX} read well",
                )


def code_lines(function: _Function) -> int:
    """Lines of a function from ``def`` to its end, without its docstring and its tables."""
    lines = set(range(function.lineno, (function.end_lineno or function.lineno) + 1))
    if ast.get_docstring(function) is not None:
        lines -= _span(function.body[0])
    for node in ast.walk(function):
        if isinstance(node, ast.Dict | ast.List | ast.Tuple | ast.Set):
            span = _span(node)
            if len(span) >= TABLE_LINES_MIN:
                lines -= span
    return len(lines)


def _span(node: ast.stmt | ast.expr) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def _coroutines(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith):
            yield Finding(
                str(path), node.lineno, "coroutines live in nodes/server and nodes/transport only"
            )


def _skips(path: PurePosixPath, tree: ast.Module) -> Iterator[Finding]:
    """A test that cannot run here is a failure of the set-up, never a skip."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in {"skip", "skipif", "importorskip"}
            and isinstance(node.value, ast.Name | ast.Attribute)
            and ast.unparse(node.value) in {"pytest", "pytest.mark", "mark"}
        ):
            yield Finding(str(path), node.lineno, "no test is skipped; set it up or remove it")
