"""The arrays that the compiled search works on.

Sets of open operations are bits of one ``int64``; counts of ``info`` operations used are packed
into as many words as they need. Imports no numba.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

#: Arrays as compiled code sees them: what they hold are plain numbers there, which the types of
#: numpy do not say of an array of any shape. ``int64``, ``int32`` and ``bool``.
IntegerCells: TypeAlias = Any
NumberCells: TypeAlias = Any
FlagCells: TypeAlias = Any


class Layout(NamedTuple):
    """One part; the search reads it only. By rank where nothing else is said."""

    starts: IntegerCells
    ends: IntegerCells
    call: IntegerCells
    bit: IntegerCells
    #: Rank that has to be done before, or -1.
    predecessor: IntegerCells
    #: Whether another waits for it at the same moment.
    alone: FlagCells
    #: Candidates of rank r are ``candidates[candidates_at[r]:candidates_at[r + 1]]``, by return.
    candidates_at: IntegerCells
    candidates: NumberCells
    fresh_at: IntegerCells
    fresh: NumberCells
    #: Bits of the overwrites among the candidates that wait for nobody.
    overwrites: IntegerCells
    #: Whether any operation waits for a predecessor.
    tied: bool
    #: By call.
    pure: FlagCells
    overwrite: FlagCells
    #: Whether rule 7 is asked; what follows is empty where it is not.
    guided: bool
    #: Demands of this rank and of later ones are left out.
    horizon: int
    #: By call: the only state that it leads to from another one, see ``kernel_codes``.
    product: IntegerCells
    #: By state: ranks of the operations that it alone allows, ascending.
    demand_at: IntegerCells
    demands: IntegerCells
    #: By state: invocation times of completed operations that lead to it, ascending; one row more
    #: for those that lead to several.
    producer_at: IntegerCells
    producers: IntegerCells
    #: By group of ``info`` operations.
    group_call: IntegerCells
    group_predecessor: IntegerCells
    group_at: IntegerCells
    #: Invocation times of all groups, one after the other.
    group_starts: IntegerCells
    group_word: IntegerCells
    group_shift: IntegerCells
    group_mask: IntegerCells
    group_increment: IntegerCells
    #: By word: one bit on top of each count.
    guard: IntegerCells


class Memory(NamedTuple):
    """What the search writes; arrays are replaced by longer ones when they are full."""

    #: State and call to state.
    transitions: NumberCells
    stack: IntegerCells
    parent: NumberCells
    move: NumberCells
    known: IntegerCells
    #: The next one known with the same key.
    following: NumberCells
    keys: IntegerCells
    heads: NumberCells
    #: Words of the configuration at hand.
    used: IntegerCells
    #: By call, and whether it is done: the number of the configuration that tried it.
    tried: IntegerCells
    #: Rows of the stack that stand at the next rank; of the sweep.
    waiting: IntegerCells
    #: State and node of what came furthest.
    stops: IntegerCells
    control: IntegerCells
