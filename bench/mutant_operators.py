"""Small changes of a program: for a piece of syntax, the pieces that may replace it.

Each function takes a node of ``ast`` and gives (operator, replacement) pairs; the node itself is
never changed, so that the tree it hangs in can be read on. Must never propose what is the same
program (a comparison replaced by itself) or what cannot be compiled. Sources: the operators of
Offutt et al., "An experimental determination of sufficient mutant operators" (1996), cut down to
those that make mistakes which people make: boundaries, negations, forgotten statements.
"""

import ast
from collections.abc import Iterator
from typing import Final, NamedTuple


class Change(NamedTuple):
    """One way to replace a node."""

    operator: str
    replacement: ast.AST


#: Boundaries move by one, equalities and memberships turn into their opposite.
_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
#: Comparisons whose swap is their negation already.
_NEGATED_BY_SWAP: Final = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
_ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
}  # fmt: skip
_FUNCTIONS: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}


def comparison_swap(operator: ast.cmpop) -> Change:
    """``<`` for ``<=``, ``==`` for ``!=``, ``in`` for ``not in``, each also the other way."""
    return Change("comparison", _COMPARISONS[type(operator)]())


def constant_changes(node: ast.Constant) -> Iterator[Change]:
    """Yield an integer one more and one less; the other boolean; nothing for the rest."""
    if isinstance(node.value, bool):
        yield Change("boolean", ast.Constant(not node.value))
    elif isinstance(node.value, int):
        yield Change("constant", ast.Constant(node.value + 1))
        yield Change("constant", ast.Constant(node.value - 1))


def arithmetic_swap(node: ast.BinOp) -> Change | None:
    """``+`` for ``-``, ``*`` for ``//`` and back; None for other operators."""
    other = _ARITHMETIC.get(type(node.op))
    return None if other is None else Change("arithmetic", other())


def assignment_swap(operator: ast.operator) -> Change | None:
    """``-=`` for ``+=`` and back; None for other operators."""
    other = _ARITHMETIC.get(type(operator))
    return None if other is None else Change("arithmetic", other())


def function_swap(node: ast.Call) -> Change | None:
    """``max`` for ``min``, ``all`` for ``any`` and back; None for other calls."""
    if isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        return Change("function", ast.Name(_FUNCTIONS[node.func.id], ast.Load()))
    return None


def negation(condition: ast.expr) -> Change | None:
    """Return the condition's opposite; None where another operator makes that very change."""
    match condition:
        case ast.UnaryOp(op=ast.Not()):
            return None
        case ast.Compare(ops=[operator]) if isinstance(operator, _NEGATED_BY_SWAP):
            return None
        case _:
            return Change("negation", ast.UnaryOp(ast.Not(), condition))


def junction_changes(node: ast.BoolOp) -> Iterator[Change]:
    """``or`` for ``and`` and back, and each of the operands left out."""
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield Change("junction", ast.BoolOp(other, node.values))
    for dropped in node.values:
        rest = [value for value in node.values if value is not dropped]
        yield Change("operand", rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest))


def deletion() -> Change:
    """Nothing in the statement's place."""
    return Change("deletion", ast.Pass())


def empty_return() -> Change:
    """``return None``, for a function that may say so."""
    return Change("return", ast.Return(ast.Constant(None)))
