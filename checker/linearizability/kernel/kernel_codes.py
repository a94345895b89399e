"""Numbers that the compiled search and what drives it agree on. Imports no numba."""

from typing import Final

# What the search answers.
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
#: Greatest rank of an operation that a configuration was left for (rule 7).
STRANDED: Final = 10
#: Of the sweep: the rank at hand, rows that wait for the next one, nodes to compact at.
LAYER: Final = 11
WAITING: Final = 12
COMPACT_AT: Final = 13
#: Most configurations that stood at one rank.
WIDEST: Final = 14
#: Node of the configuration at hand.
PARENT: Final = 15
#: Of the sweep: place of the next configuration; those before it are done with.
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
#: Of the sweep: its own node where it is known already, else -1.
OWN: Final = 7
USED: Final = 8

# Columns of ``Memory.known``; the words of used ``info`` follow.
KNOWN_DONE: Final = 0
KNOWN_AVAILABLE: Final = 1
KNOWN_USED: Final = 2

#: Moves that are no rank: nothing, and the first ``info`` group, the next ones below.
MOVE_PASS: Final = -1
MOVE_OPEN: Final = -2
#: Transition that was not asked for yet; another negative one is illegal.
UNASKED: Final = -2
#: Key of a free slot in the hash table, and end of a list.
FREE: Final = -1
#: States noted at the furthest rank.
STOPS_MAX: Final = 16
#: In ``Memory.following``: forgotten, since another one makes it needless.
DROPPED: Final = -2
#: In ``Layout.product``: changes no state, or leads to several.
NO_PRODUCT: Final = -1
MANY_PRODUCTS: Final = -2

#: Ways that one configuration may have, ``info`` apart: a word of operations, and to pass.
WAYS_MAX: Final = 66
#: Answer of ``satisfied`` besides a set of bits.
UNKNOWN: Final = -1
