"""All mutants of one source file, in an order that depends on its text alone.

A mutant is named by a hash of its file, function, operator and change, not of its line: it keeps
its name when the lines above it move. Rules of what is changed and what is left alone:
``bench.mutant_walk``. Must never write a file.
"""

import ast
import hashlib
from collections import Counter
from pathlib import PurePosixPath
from typing import Final

import msgspec

from bench.mutant_walk import Site, sites_of

_ID_BYTES: Final = 4


class Mutant(msgspec.Struct, frozen=True, kw_only=True):
    """One small change of one file."""

    #: Eight hexadecimal digits; the same as long as function and change are.
    id: str
    #: Relative to the project, with slashes.
    file: str
    line: int
    #: Class and function, dotted; empty at the top of the file.
    scope: str
    operator: str
    #: The statement's first line, before and after.
    before: str
    after: str
    #: Position among all mutants of the file.
    number: int

    @property
    def module(self) -> str:
        """Name by which Python imports the file."""
        return module_of(self.file)


def module_of(file: str) -> str:
    """Name by which Python imports a file of a room."""
    return ".".join(("splitbrain", *PurePosixPath(file).with_suffix("").parts))


def mutants_of(source: str, file: str) -> tuple[Mutant, ...]:
    """All mutants of a file's text, in order."""
    seen: Counter[tuple[str, ...]] = Counter()
    found: list[Mutant] = []
    for number, site in enumerate(sites_of(ast.parse(source))):
        line = _line_of(site)
        before = _first_line(site.statement.get())
        original = site.slot.get()
        _apply(site, original)
        after = _first_line(site.statement.get())
        site.slot.put(original)
        key = (file, site.scope, site.change.operator, before, after)
        name = "\n".join((*key, str(seen[key])))
        seen[key] += 1
        found.append(
            Mutant(
                id=hashlib.blake2b(name.encode(), digest_size=_ID_BYTES).hexdigest(),
                file=file,
                line=line,
                scope=site.scope,
                operator=site.change.operator,
                before=before,
                after=after,
                number=number,
            )
        )
    return tuple(found)


def mutated(source: str, mutant: Mutant) -> ast.Module:
    """Return the file's tree with this change, ready to be compiled.

    Raises:
        ValueError: the text is another one than the mutant was made of.
    """
    mutants = mutants_of(source, mutant.file)
    if mutant.number >= len(mutants) or mutants[mutant.number].id != mutant.id:
        raise ValueError(f"{mutant.file} has changed since the mutant {mutant.id} was drawn")
    tree = ast.parse(source)
    site = sites_of(tree)[mutant.number]
    _apply(site, site.slot.get())
    return ast.fix_missing_locations(tree)


def _apply(site: Site, original: object) -> None:
    replacement = site.change.replacement
    if isinstance(original, list):
        site.slot.put([replacement])
        return
    if isinstance(original, ast.stmt | ast.expr) and isinstance(replacement, ast.stmt | ast.expr):
        ast.copy_location(replacement, original)
    site.slot.put(replacement)


def _line_of(site: Site) -> int:
    for held in (site.slot.get(), site.slot.parent, site.statement.get()):
        if isinstance(held, ast.stmt | ast.expr):
            return held.lineno
    return 1


def _first_line(statement: object) -> str:
    if not isinstance(statement, ast.stmt):
        return ""
    if isinstance(statement, ast.FunctionDef) and len(statement.body) == 1:
        (only,) = statement.body
        if isinstance(only, ast.Return):
            return f"def {statement.name}: {ast.unparse(only)}"
    lines = ast.unparse(statement).splitlines()
    return next(line for line in lines if not line.startswith("@"))
