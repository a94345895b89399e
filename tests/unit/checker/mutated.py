"""A module with one piece of its source replaced: a mutant that tests must tell apart."""

import inspect
from collections.abc import Sequence
from types import ModuleType


def mutated(module: ModuleType, found: str, put: str, without: Sequence[str] = ()) -> ModuleType:
    """The mutant; the module itself stays as it is.

    Args:
        module: whose source is taken.
        found: stands in it exactly once.
        put: stands there instead.
        without: pieces that are left out wherever they stand.
    """
    source = inspect.getsource(module)
    assert source.count(found) == 1, f"{source.count(found)} places"
    source = source.replace(found, put)
    for piece in without:
        source = source.replace(piece, "")
    mutant = ModuleType("mutant")
    exec(compile(source, "mutant", "exec"), mutant.__dict__)
    return mutant
