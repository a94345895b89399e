"""Arrays of the compiled search, and the numbers in them; imports no numba.

Sets of open operations are bits of one ``int64``; counts of ``info`` operations used are packed
into as many words as they need.
"""

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

# Answers of the search.
FOUND: Final = 1
NONE_LEFT: Final = 2
LIMIT: Final = 3
STACK_FULL: Final = 4
MEMO_FULL: Final = 5
TABLE_FULL: Final = 6
ASK: Final = 7
WAITING_FULL: Final = 8

# Places in ``Memory.control``.
STACKED: Final = 0
NODES: Final = 1
KEYS: Final = 2
CONFIGURATIONS: Final = 3
DEEPEST: Final = 4
STOPS: Final = 5
ASKED_STATE: Final = 6
ASKED_CALL: Final = 7
LAST: Final = 8
STAMP: Final = 9
#: Greatest rank of an operation for which a configuration was left (rule 7).
STRANDED: Final = 10
#: Sweep: current rank, rows that wait for the next one, number of nodes to compact at.
LAYER: Final = 11
WAITING: Final = 12
COMPACT_AT: Final = 13
#: Most configurations that stood at one rank.
WIDEST: Final = 14
#: Node of the current configuration.
PARENT: Final = 15
#: Sweep: place of the next configuration; those before it are done with.
HEAD: Final = 16
CONTROLS: Final = 17

# Columns of ``Memory.stack``; the words of used ``info`` follow.
RANK: Final = 0
STATE: Final = 1
DONE: Final = 2
AVAILABLE: Final = 3
BOUND: Final = 4
NODE: Final = 5
MOVE: Final = 6
#: Sweep: its own node where it is known already, else -1.
OWN: Final = 7
#: Whether the last operation was an ``info`` one that nothing has needed yet (rule 8).
OWED: Final = 8
USED: Final = 9

# Columns of ``Memory.known``; the words of used ``info`` follow.
KNOWN_DONE: Final = 0
KNOWN_AVAILABLE: Final = 1
KNOWN_USED: Final = 2

#: Moves that are no rank: nothing, and the first ``info`` group, the next ones below.
MOVE_PASS: Final = -1
MOVE_OPEN: Final = -2
#: Transition not asked for yet; another negative one is illegal.
UNASKED: Final = -2
#: Key of a free slot in the hash table, and end of a list.
FREE: Final = -1
#: States noted at the furthest rank.
STOPS_MAX: Final = 16
#: Mark in ``Memory.following``: forgotten, since another one makes it needless.
DROPPED: Final = -2
#: Marks in ``Layout.product``: changes no state, or leads to several.
NO_PRODUCT: Final = -1
MANY_PRODUCTS: Final = -2

#: Greatest number of ways of one configuration, without ``info``: a word of operations, and to
#: pass.
WAYS_MAX: Final = 66
#: Greatest number of ``info`` operations tried at a configuration of a dive.
DIVE_WAYS_MAX: Final = 4
#: Answer of ``satisfied`` besides a set of bits.
UNKNOWN: Final = -1


Integers = NDArray[np.int64]

#: Arrays of ``int64``, ``int32`` and ``bool`` as compiled code sees them: their items are plain
#: numbers there, which numpy's types do not say of an array of any shape.
IntegerCells: TypeAlias = Any
NumberCells: TypeAlias = Any
FlagCells: TypeAlias = Any


class Layout(NamedTuple):
    """Part as arrays, by rank unless noted; read only."""

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
    #: Bits of the overwrites among the candidates that wait for no predecessor.
    overwrites: IntegerCells
    #: Whether any operation waits for a predecessor.
    tied: bool
    #: By call.
    pure: FlagCells
    overwrite: FlagCells
    #: Whether rule 7 is used; the fields below are empty if not.
    guided: bool
    #: Demands of this rank and of later ones are left out.
    horizon: int
    #: By call: the only state that it leads to from another one, see ``NO_PRODUCT``.
    product: IntegerCells
    #: By state: ranks of the operations that only it allows, ascending.
    demand_at: IntegerCells
    demands: IntegerCells
    #: By state: invocation times of completed operations that lead to it, ascending; one more row
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
    #: Groups that leave state s are ``leading[leading_at[s]:leading_at[s + 1]]``; one more row for
    #: those that leave several.
    leading_at: IntegerCells
    leading: IntegerCells
    #: Whether rule 8 is used; the two fields below are empty if not.
    sparing: bool
    #: By call: the only state that allows it, or -1.
    needs: IntegerCells
    #: By group: the only state in which its call acts, or -1 for all.
    group_acts_in: IntegerCells
    #: Whether uses are not compared (rule 6) and few ``info`` operations tried at once.
    dive: bool
    #: By word: one bit on top of each count.
    guard: IntegerCells


class Memory(NamedTuple):
    """Arrays that the search writes; replaced by longer ones when full."""

    #: State after each state and call.
    transitions: NumberCells
    stack: IntegerCells
    parent: NumberCells
    move: NumberCells
    known: IntegerCells
    #: Next known row with the same key.
    following: NumberCells
    keys: IntegerCells
    heads: NumberCells
    #: Words of the current configuration.
    used: IntegerCells
    #: By call and whether it is done: the configuration that tried it last.
    tried: IntegerCells
    #: By state: the configuration that wanted it last (rule 8); and wanted states, one per row.
    wanted: IntegerCells
    #: Sweep: rows of the stack that stand at the next rank.
    waiting: IntegerCells
    #: State and node of the furthest configurations.
    stops: IntegerCells
    control: IntegerCells
