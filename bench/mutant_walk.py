"""Every place of a syntax tree where ``bench.mutant_operators`` knows a change.

Left out, because no test could or should notice a difference there: docstrings, annotations, what
is for a type checker only, texts for people (f-strings, what a ``raise`` says), protocols and
enumerations, and assignments in a constructor (without them everything fails at once, which would
flatter the score).

The order depends on the tree alone. Must never change the tree.
"""

import ast
from collections.abc import Iterator
from typing import Final, NamedTuple

from bench.mutant_operators import (
    Change,
    arithmetic_swap,
    assignment_swap,
    comparison_swap,
    constant_changes,
    deletion,
    empty_return,
    function_swap,
    junction_changes,
    negation,
)

#: Classes of these hold no behaviour.
_BASES_LEFT_OUT: Final = frozenset({"Protocol", "IntEnum", "StrEnum", "Enum"})
_CONSTRUCTOR: Final = "__init__"


class Slot(NamedTuple):
    """A place in the tree that holds a node, or a list of statements."""

    parent: ast.AST
    field: str
    #: Position in the field's list; None: the field itself.
    at: int | None = None

    def get(self) -> object:
        """Source text that is there."""
        held = getattr(self.parent, self.field)
        return held if self.at is None else held[self.at]

    def put(self, held: object) -> None:
        """Set it."""
        if self.at is None:
            setattr(self.parent, self.field, held)
        else:
            getattr(self.parent, self.field)[self.at] = held


class Site(NamedTuple):
    """One change at one place."""

    slot: Slot
    change: Change
    #: The innermost statement around it.
    statement: Slot
    #: Class and function, dotted; empty at the top.
    scope: str


def sites_of(tree: ast.Module) -> list[Site]:
    """All places, in order."""
    walk = _Walk()
    walk.body(tree, "body")
    return walk.sites


class _Walk:
    """Goes through a tree once and notes every place that can be changed."""

    def __init__(self) -> None:
        self.sites: list[Site] = []
        self._scope: tuple[str, ...] = ()
        self._function: ast.FunctionDef | None = None
        self._statement = Slot(ast.Pass(), "")

    def body(self, parent: ast.AST, field: str) -> None:
        """A list of statements."""
        for index, statement in enumerate(getattr(parent, field, ())):
            slot = Slot(parent, field, index)
            # Set again after what is nested in the statement, too.
            outer, self._statement = self._statement, slot
            self._take(slot, statement)
            self._statement = outer

    def _note(self, slot: Slot, change: Change | None) -> None:
        if change is not None:
            self.sites.append(Site(slot, change, self._statement, ".".join(self._scope)))

    def _take(self, slot: Slot, statement: ast.stmt) -> None:
        match statement:
            case ast.FunctionDef():
                self._take_function(statement)
            case ast.ClassDef():
                self._take_class(statement)
            case ast.If():
                self._take_branches(statement)
            case ast.Raise() | ast.Continue() | ast.Break() | ast.Delete():
                self._note(slot, deletion())
            case ast.Return():
                self._take_return(slot, statement)
            case ast.Expr() if not isinstance(statement.value, ast.Constant):
                self._note(slot, deletion())
                self._expression(Slot(statement, "value"))
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                self._take_assignment(slot, statement)
            case _:
                self._take_nested(statement)

    def _take_nested(self, statement: ast.stmt) -> None:
        """Statements that hold others; nothing for what holds none."""
        match statement:
            case ast.While():
                self._condition(Slot(statement, "test"))
            case ast.For():
                self._expression(Slot(statement, "iter"))
            case ast.With():
                for item in statement.items:
                    self._expression(Slot(item, "context_expr"))
            case ast.Match():
                for case in statement.cases:
                    self.body(case, "body")
            case _:
                pass
        self.body(statement, "body")
        for handler in getattr(statement, "handlers", ()):
            self.body(handler, "body")
        self.body(statement, "orelse")
        self.body(statement, "finalbody")

    def _take_function(self, function: ast.FunctionDef) -> None:
        outer = (self._scope, self._function)
        self._scope, self._function = (*self._scope, function.name), function
        for field in ("defaults", "kw_defaults"):
            for index, default in enumerate(getattr(function.args, field)):
                if default is not None:
                    self._expression(Slot(function.args, field, index))
        if _returns_nothing(function) and _length(function) > 1:
            # The change for a function as a whole is seen at its ``def``.
            self._note(Slot(function, "body"), empty_return())
        self.body(function, "body")
        self._scope, self._function = outer

    def _take_class(self, thing: ast.ClassDef) -> None:
        if any(isinstance(base, ast.Name) and base.id in _BASES_LEFT_OUT for base in thing.bases):
            return
        outer, self._scope = self._scope, (*self._scope, thing.name)
        self.body(thing, "body")
        self._scope = outer

    def _take_branches(self, branch: ast.If) -> None:
        if isinstance(branch.test, ast.Name) and branch.test.id == "TYPE_CHECKING":
            return
        self._condition(Slot(branch, "test"))
        self.body(branch, "body")
        self.body(branch, "orelse")

    def _take_return(self, slot: Slot, statement: ast.Return) -> None:
        if statement.value is None:
            self._note(slot, deletion())
            return
        is_none = isinstance(statement.value, ast.Constant) and statement.value.value is None
        if self._function is not None and _may_return_none(self._function) and not is_none:
            self._note(slot, empty_return())
        self._expression(Slot(statement, "value"))

    def _take_assignment(
        self, slot: Slot, statement: ast.Assign | ast.AnnAssign | ast.AugAssign
    ) -> None:
        if statement.value is None:
            return
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        is_constructor = self._function is not None and self._function.name == _CONSTRUCTOR
        if isinstance(targets[0], ast.Attribute | ast.Subscript) and not is_constructor:
            self._note(slot, deletion())
        if isinstance(statement, ast.AugAssign):
            self._note(Slot(statement, "op"), assignment_swap(statement.op))
        self._expression(Slot(statement, "value"))

    def _condition(self, slot: Slot) -> None:
        """Yield the changes of a condition: all of an expression's, and its opposite."""
        condition = slot.get()
        if isinstance(condition, ast.expr):
            self._note(slot, negation(condition))
        self._expression(slot)

    def _expression(self, slot: Slot) -> None:
        node = slot.get()
        if isinstance(node, ast.JoinedStr):
            return
        if isinstance(node, ast.IfExp):
            self._condition(Slot(node, "test"))
            self._expression(Slot(node, "body"))
            self._expression(Slot(node, "orelse"))
            return
        self._changes(slot, node)
        for child in _children(node):
            self._expression(child)

    def _changes(self, slot: Slot, node: object) -> None:
        """Yield the changes of an expression itself."""
        match node:
            case ast.Constant():
                for change in constant_changes(node):
                    self._note(slot, change)
            case ast.Compare():
                for index, operator in enumerate(node.ops):
                    self._note(Slot(node, "ops", index), comparison_swap(operator))
            case ast.BoolOp():
                for change in junction_changes(node):
                    self._note(slot, change)
            case ast.UnaryOp(op=ast.Not()):
                self._note(slot, Change("negation", node.operand))
            case ast.BinOp() if not _is_text(node.left) and not _is_text(node.right):
                self._note(Slot(node, "op"), arithmetic_swap(node))
            case ast.Call():
                self._note(Slot(node, "func"), function_swap(node))
            case _:
                pass


def _children(node: object) -> Iterator[Slot]:
    """Yield the expressions right below a node, with where they hang."""
    if not isinstance(node, ast.AST):
        return
    for field, held in ast.iter_fields(node):
        if isinstance(held, ast.expr):
            yield Slot(node, field)
        elif isinstance(held, ast.keyword | ast.comprehension):
            yield from _children(held)
        elif isinstance(held, list):
            for index, one in enumerate(held):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
                if isinstance(one, ast.expr):
                    yield Slot(node, field, index)
                elif isinstance(one, ast.keyword | ast.comprehension):
                    yield from _children(one)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _returns_nothing(function: ast.FunctionDef) -> bool:
    returns = function.returns
    is_none = isinstance(returns, ast.Constant) and returns.value is None
    return is_none and function.name != _CONSTRUCTOR


def _length(function: ast.FunctionDef) -> int:
    """Statements, the docstring apart."""
    return len(function.body) - (ast.get_docstring(function) is not None)


def _may_return_none(function: ast.FunctionDef) -> bool:
    if function.returns is None:
        return False
    nodes = ast.walk(function.returns)
    return any(isinstance(node, ast.Constant) and node.value is None for node in nodes)
