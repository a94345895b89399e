"""Rules about files that no linter has: names, places, text, sizes, what rooms promise."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from tidy.tree import Breach, Finding, findings_in

#: Names that say nothing about what is inside.
EMPTY_NAMES = frozenset({"utils", "util", "helpers", "helper", "common", "misc"})
#: Generated or foreign text.
EXEMPT = frozenset({"requirements.lock", "package-lock.json"})

#: Below these lie one machine's or one user's files.
_PRIVATE_FOLDERS = ("root", "home", "work", "Users")
_MACHINE_PATH = re.compile(rf"(?<![\w./~}}-])/(?:{'|'.join(_PRIVATE_FOLDERS)})/\w")

#: Package sources are the user's choice, never the project's; spelled apart so as not to match.
_HOSTS = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("registry", "npmjs", "org"),
        ("repo1", "maven", "apache", "org"),
        ("deb", "debian", "org"),
        ("proxy", "golang", "org"),
    )
)

#: Spelled apart for the same reason.
_UNFINISHED = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b")
MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
#: A literal of at least so many lines is a table and not counted as code.
TABLE_LINES_MIN = 5
#: Required in the docstring of a longer module.
LENGTH_REASON = "longer than 400 lines because"

#: Words of names by which a node would know that it is tested; a planted bug is a patch.
_TESTED = re.compile(r"(?<![a-z])(?:bugs?|planted|patched)(?![a-z])")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")

#: In ``nodes`` only these may hold coroutines.
_ASYNC_ROOMS = frozenset({"server", "transport"})


def check_names(paths: Iterable[PurePosixPath]) -> list[Finding]:
    """Names that say nothing, Python where a package of that name would be shadowed."""
    return [finding for path in paths for finding in findings_in(path, _names(path))]


def _names(path: PurePosixPath) -> Iterator[Breach]:
    parts = {PurePosixPath(part).stem for part in path.parts}
    for name in sorted(parts & EMPTY_NAMES):
        yield 0, f"the name {name!r} says nothing; name the thing"
    if path.parts[0] == "docker" and path.name == "__init__.py":
        yield 0, "docker/ must be no package: it would shadow the library"
    if path.parts[0] == "tests" and path.name == "__init__.py":
        yield 0, "tests are no packages (importmode=importlib)"


def check_text(path: PurePosixPath, text: str) -> list[Finding]:
    """Machine paths, registry hosts, unfinished work, careless shell scripts."""
    if path.name in EXEMPT or "corpus" in path.parts:
        return []
    return findings_in(path, _text(text))


def _text(text: str) -> Iterator[Breach]:
    for number, line in enumerate(text.splitlines(), start=1):
        if _MACHINE_PATH.search(line):
            yield number, "an absolute path of one machine"
        if _UNFINISHED.search(line):
            yield number, "unfinished work; finish it or open an issue"
        yield from ((number, f"names the package source {host}") for host in _HOSTS if host in line)
    shebang = text.split("\n", 1)[0]
    if shebang.startswith("#!") and "sh" in shebang:
        strict = "set -euo pipefail" if "bash" in shebang else "set -eu"
        if strict not in text:
            yield 1, f"a script without {strict!r} goes on after a failure"


def check_python(path: PurePosixPath, text: str) -> list[Finding]:
    """Sizes, docstrings, coroutines in pure rooms, tests that are skipped."""
    tree = ast.parse(text)
    found = [*_module(path, text, tree), *_functions(tree)]
    if path.parts[0] == "nodes" and path.parts[1] not in _ASYNC_ROOMS:
        found += _coroutines(tree)
    if path.parts[0] == "nodes":
        found += _knowledge_of_tests(tree)
    if path.parts[0] == "tests":
        found += _skips(tree)
    return findings_in(path, found)


def _module(path: PurePosixPath, text: str, tree: ast.Module) -> Iterator[Breach]:
    docstring = ast.get_docstring(tree)
    if docstring is None and path.parts[0] != "tests":
        yield 1, "a module says its purpose in a docstring"
    lines = len(text.splitlines())
    if lines > MODULE_LINES_MAX and LENGTH_REASON not in " ".join((docstring or "").split()):
        yield 0, f"{lines} lines; split it, or say in the docstring {LENGTH_REASON!r} and why"


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(tree: ast.Module) -> Iterator[Breach]:
    for node in ast.walk(tree):
        if isinstance(node, _Function) and (lines := code_lines(node)) > FUNCTION_LINES_MAX:
            at_most = f"at most {FUNCTION_LINES_MAX} read well"
            yield node.lineno, f"{node.name} has {lines} lines, {at_most}"


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


def _coroutines(tree: ast.Module) -> Iterator[Breach]:
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith):
            yield node.lineno, "coroutines live in nodes/server and nodes/transport only"


def _knowledge_of_tests(tree: ast.Module) -> Iterator[Breach]:
    advice = "a node does not know that it is tested; plant bugs by patches"
    for node in ast.walk(tree):
        match node:
            case (
                ast.Name(id=name)
                | ast.Attribute(attr=name)
                | ast.arg(arg=name)
                | ast.alias(name=name)
                | ast.ImportFrom(module=str(name))
                | ast.FunctionDef(name=name)
                | ast.ClassDef(name=name)
                | ast.keyword(arg=str(name))
            ) if _TESTED.search(_HUMP.sub("_", name).lower()):
                yield getattr(node, "lineno", 0), f"{name}: {advice}"
            case _:
                pass


def _skips(tree: ast.Module) -> Iterator[Breach]:
    """A test that cannot run here is a failure of the set-up, never a skip."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in {"skip", "skipif", "importorskip"}
            and isinstance(node.value, ast.Name | ast.Attribute)
            and ast.unparse(node.value) in {"pytest", "pytest.mark", "mark"}
        ):
            yield node.lineno, "no test is skipped; set it up or remove it"
