"""Names of a module that are sets, as far as its text says.

Names and attributes that are annotated as sets or given one; a name counts in its function, an
attribute in its module. Must rather miss a set than call a list one.
"""

import ast
from collections.abc import Iterator

_SET_TYPES = frozenset({"AbstractSet", "FrozenSet", "MutableSet", "Set", "frozenset", "set"})
_SET_CALLS = frozenset({"frozenset", "set"})
_SET_METHODS = frozenset({"difference", "intersection", "symmetric_difference", "union"})
#: Calls whose result does not depend on the order of what they are given.
_ORDERLESS = frozenset({"all", "any", "frozenset", "len", "max", "min", "set", "sorted", "sum"})

_Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class SetNames:
    """The names of one module."""

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
