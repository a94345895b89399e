"""Compilation of the search ahead: ``python -m splitbrain.checker.linearizability.precompile``.

It takes some 15 s once for each state of the kernel's source. Without it the first part that is
hard enough pays for it from its own budget.
"""

import numpy as np

from splitbrain.checker.linearizability.kernel.kernel_cache import is_compiled


def compile_ahead() -> None:
    """Run everything that is compiled on two operations; ``ImportError`` without numba."""
    from splitbrain.checker.linearizability.kernel.columns import PartColumns, RegisterColumns
    from splitbrain.checker.linearizability.kernel.compiled_search import (
        CompiledModel,
        CompiledSearch,
    )
    from splitbrain.checker.linearizability.kernel.kernel_layout import FREE
    from splitbrain.checker.linearizability.kernel.kernel_rules import rehash
    from splitbrain.checker.linearizability.methods.zones import agree_at_once
    from splitbrain.checker.linearizability.part.problem import Transitions
    from splitbrain.checker.models.model import Call
    from splitbrain.checker.models.registry import model_named
    from splitbrain.contracts.budget import Unlimited

    model = model_named("cas-register")
    calls = [Call("write", 1, None, known=True)]
    # The second is invoked as the first returns: the case in which processes matter.
    starts = np.arange(2, dtype=np.int64)
    zeros = np.zeros(2, dtype=np.int64)
    compiled = CompiledModel(model, calls, Transitions(model, calls))
    for by_rank in (False, True):
        search = CompiledSearch(
            PartColumns(starts, starts + 1, zeros, zeros), compiled, Unlimited(), by_rank=by_rank
        )
        search.run()
    keys = np.full(2, FREE, dtype=np.int64)
    heads = np.full(2, FREE, dtype=np.int32)
    rehash(keys, heads, keys.copy(), heads.copy())
    register = RegisterColumns(starts, starts, zeros, np.array([True, False]), zeros)
    assert agree_at_once(register), "a write and a read of it have an order"


if __name__ == "__main__":
    if not is_compiled():
        compile_ahead()
