"""Demands: operations that one state alone allows, and operations that lead to it, for rule 7.

Where the calls of a part lead to few states, all steps are asked for once; where they lead to many,
the model may say the same of each call (``Model.moves``). A call that exactly one
state allows (a read of a value, an accepted cas, the release of a lock) is a *demand* for that
state; a call that leads to exactly one state from others is a *producer* of it. A configuration
that leaves a state while it is still demanded, with no producer to come in time, leads nowhere
(rule 7; the first six are those of ``linearizability.methods.search``, which does without it).

Must never guess: where neither is possible there are no demands. Needs no numba.
"""

from typing import Any, Final, NamedTuple

import numpy as np

from splitbrain.checker.linearizability.kernel.columns import BEFORE_ALL, NEVER, PartColumns
from splitbrain.checker.linearizability.kernel.kernel_layout import (
    MANY_PRODUCTS,
    NO_PRODUCT,
    Integers,
)
from splitbrain.checker.linearizability.part.problem import ILLEGAL, Transitions

#: Greatest number of steps asked for: some tenths of a second.
STEPS_MAX: Final = 300_000
#: Mark of a call that several states allow, or none.
_NOT_ALONE: Final = -1


class AllSteps(NamedTuple):
    """Each call as a step between states."""

    #: State after each state and call; ``ILLEGAL`` where the call may not happen. None where the
    #: model tells of each call without them.
    table: Any
    #: Number of states.
    states: int
    #: Only state that allows each call, or -1.
    allowed_by: Integers
    #: Only state that each call leads to from another one, ``NO_PRODUCT`` or ``MANY_PRODUCTS``.
    product: Integers
    #: Only state in which each call leads there, or -1 for all; None where the model does not tell.
    acts_in: Integers | None


class Demands(NamedTuple):
    """Demands of one part, as in ``kernel_layout.Layout``."""

    product: Integers
    demand_at: Integers
    demands: Integers
    producer_at: Integers
    producers: Integers


NO_DEMANDS: Final = Demands(*(np.zeros(2, dtype=np.int64) for _ in range(5)))


def all_steps(transitions: Transitions, calls_count: int) -> AllSteps | None:
    """Return every step from every state that the calls lead to; None if there are too many."""
    rows: list[list[int]] = []
    while len(rows) < len(transitions.states):
        if (len(rows) + 1) * calls_count > STEPS_MAX:
            return None
        state = len(rows)
        rows.append([transitions.after(state, call) for call in range(calls_count)])
        if len(transitions.states) * calls_count > STEPS_MAX:
            return None
    table = np.array(rows, dtype=np.int64).reshape(len(rows), calls_count)
    allowed = table != ILLEGAL
    allowed_by = np.where(allowed.sum(axis=0) == 1, allowed.argmax(axis=0), _NOT_ALONE)
    moves = allowed & (table != np.arange(len(rows))[:, None])
    greatest = np.where(moves, table, NO_PRODUCT).max(axis=0, initial=NO_PRODUCT)
    least = np.where(moves, table, len(rows)).min(axis=0, initial=len(rows))
    product = np.where(greatest == least, greatest, MANY_PRODUCTS)
    product[greatest == NO_PRODUCT] = NO_PRODUCT
    return AllSteps(table, len(rows), allowed_by, product, None)


def declared_steps(transitions: Transitions) -> AllSteps | None:
    """Return what the model says of each call; None if it does not."""
    if transitions.moves is None:
        return None
    moves = np.array(transitions.moves, dtype=np.int64).reshape(-1, 4)
    needs, leaves, acts, _ = (np.ascontiguousarray(column) for column in moves.T)
    return AllSteps(None, len(transitions.states), needs, leaves, acts)


def fill_table(table: Any, transitions: Transitions) -> None:
    """Enter every step of calls of which the model tells; the table is by state and call."""
    assert transitions.moves is not None
    moves = np.array(transitions.moves, dtype=np.int64).reshape(-1, 4)
    needs, leaves, acts, bars = moves.T
    calls = np.arange(len(moves))
    table[:] = np.arange(len(table))[:, None]
    always = (acts < 0) & (leaves >= 0)
    table[:, always] = leaves[always]
    once = (acts >= 0) & (leaves >= 0)
    table[acts[once], calls[once]] = leaves[once]
    needy, barred = needs >= 0, bars >= 0
    allowed = table[needs[needy], calls[needy]]
    table[:, needy] = ILLEGAL
    table[needs[needy], calls[needy]] = allowed
    table[bars[barred], calls[barred]] = ILLEGAL


def unsupplied(steps: AllSteps, columns: PartColumns) -> int | None:
    """Return the place of the first operation to return that needs what nobody left by then."""
    if (steps.product == MANY_PRODUCTS).any():
        return None
    earliest = np.full(steps.states, NEVER, dtype=np.int64)
    # The initial one.
    earliest[0] = BEFORE_ALL
    left = steps.product[columns.calls]
    leaves = left != NO_PRODUCT
    np.minimum.at(earliest, left[leaves], columns.starts[leaves])
    needed = steps.allowed_by[columns.calls]
    lacking = (needed != _NOT_ALONE) & (columns.ends < earliest[needed]) & (columns.ends != NEVER)
    if not lacking.any():
        return None
    return int(np.where(lacking, columns.ends, NEVER).argmin())


def demands_of(steps: AllSteps, starts: Integers, calls: Integers) -> Demands:
    """Return the demands and producers of a part, given times of invocation and calls by rank."""
    states = steps.states
    demanded = steps.allowed_by[calls]
    ranks = np.flatnonzero(demanded != _NOT_ALONE)
    demand_at, order = by_row(demanded[ranks], states)
    # Operations that lead to several states have a row of their own.
    produced = steps.product[calls]
    produced = np.where(produced == MANY_PRODUCTS, states, produced)
    makers = np.flatnonzero(produced != NO_PRODUCT)
    makers = makers[np.argsort(starts[makers], kind="stable")]
    producer_at, maker_order = by_row(produced[makers], states + 1)
    return Demands(
        product=np.append(steps.product, NO_PRODUCT),
        demand_at=demand_at,
        demands=ranks[order],
        producer_at=producer_at,
        producers=starts[makers[maker_order]],
    )


def by_row(rows: Integers, count: int) -> tuple[Integers, Integers]:
    """Return the bounds of each row, and the stable order that sorts by row."""
    order = np.argsort(rows, kind="stable")
    return np.searchsorted(rows[order], np.arange(count + 1)), order
