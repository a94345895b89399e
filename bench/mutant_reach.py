"""The first world that comes to a statement, for every statement of a function.

A mutant is the same program until the statement that it changes is run. So what the code as it is
did in the worlds before the first that comes there, the mutant does as well, and those need not be
run again; where none comes there, it is the same program in all of them. Later worlds are run even
where they do not come there, for what a process keeps (a cache) may carry the change over.

Statements outside functions are run when a module is loaded, and are not looked at: their mutants
are run in all worlds. Must never change what the code does.
"""

import ast
from collections.abc import Iterator
from typing import Final

from bench.mutant_walk import Site, sites_of

#: Name under which a marked module finds the set that it notes its statements in.
NOTE: Final = "__reached__"
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Reach:
    """Statements that were run, by place, with the first world that ran each."""

    def __init__(self) -> None:
        self._places: list[str] = []
        #: Numbers of places that were run since anybody asked; the marked code adds to it.
        self.fresh: set[int] = set()
        #: Place -> seed of the first world.
        self.first: dict[str, int] = {}

    def marked(self, tree: ast.Module, file: str) -> ast.Module:
        """Return the file's tree, changed so that each statement of a function notes itself."""
        for function in [node for node in ast.walk(tree) if isinstance(node, _Function)]:
            start = 1 if ast.get_docstring(function, clean=False) is not None else 0
            function.body[start:] = self._marked(function.body[start:], file)
        return ast.fix_missing_locations(tree)

    def ran(self, seed: int) -> None:
        """Take what was run since the last time as run by this world."""
        for number in self.fresh:
            self.first.setdefault(self._places[number], seed)
        self.fresh.clear()

    def _marked(self, statements: list[ast.stmt], file: str) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in statements:
            if not isinstance(statement, _Function | ast.ClassDef):
                for nested in _nested(statement):
                    nested[:] = self._marked(nested, file)
            note = ast.Call(ast.Name(NOTE, ast.Load()), [ast.Constant(len(self._places))], [])
            self._places.append(_named(file, statement))
            found += [ast.copy_location(ast.Expr(note), statement), statement]
        return found


def places_of(source: str, file: str) -> tuple[str | None, ...]:
    """Return the places of the statements that the file's mutants change, in their order.

    None: one outside functions.
    """
    tree = ast.parse(source)
    inside = {
        id(one)
        for function in ast.walk(tree)
        if isinstance(function, _Function)
        for one in _all(function.body)
    }
    changed = map(_changed, sites_of(tree))
    return tuple(
        None if one is None or id(one) not in inside else _named(file, one) for one in changed
    )


def _changed(site: Site) -> ast.stmt | None:
    """Return the statement that is run first where the change is met."""
    held = site.statement.get()
    if isinstance(held, _Function) and site.slot.field == "body" and site.slot.parent is held:
        start = 1 if ast.get_docstring(held, clean=False) is not None else 0
        return held.body[start] if len(held.body) > start else None
    return held if isinstance(held, ast.stmt) else None


def _all(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that are marked in a function's body."""
    for statement in statements:
        yield statement
        if not isinstance(statement, _Function | ast.ClassDef):
            for nested in _nested(statement):
                yield from _all(nested)


def _nested(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements right below a statement."""
    for held in (statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        for field in ("body", "orelse", "finalbody"):
            nested = getattr(held, field, None)
            if isinstance(nested, list) and nested:
                yield nested  # pyright: ignore[reportUnknownVariableType]


def _named(file: str, statement: ast.stmt) -> str:
    return f"{file}:{statement.lineno}:{statement.col_offset}"
