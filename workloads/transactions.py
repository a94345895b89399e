"""Transactions of several parts over keys that are born and given up all the time.

A few keys live at once, one a *lane*, and lanes are drawn by a Zipf law, so that some keys are
contended and others rest. Each key is given up after a number of writes that is drawn for it: with
one number for all, keys would be born and die in step, and the first write of a row would be met
rarely. The number is turned into rounds, in each of which every slot has one operation, so that a
key is a function of (seed, lane, n) and no slot has to know of another.

Source: Kingsbury and Alvaro, Elle: Inferring Isolation Anomalies from Experimental Observations
(VLDB 2020), section 7.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, ClassVar, Final, Self

from splitbrain.contracts.draws import Draws, spread
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.history.functions import Function, Functions
from splitbrain.workloads.keys import chosen

#: Parts of a transaction at most.
PARTS_MAX: Final = 8
#: Keys that live at once.
LANES: Final = 10
#: Weights of the lanes: a Zipf law of exponent 1.
LANE_WEIGHTS: Final = tuple((lane, round(2520 / (lane + 1))) for lane in range(LANES))
#: Writes of a key: at least so many, and their size drawn over so many doublings.
WRITES_MIN: Final = 2
WRITES_DOUBLINGS: Final = 6
_PLAIN: Final = (
    *("read-uncommitted", "read-committed", "parallel-snapshot-isolation"),
    *("snapshot-isolation", "repeatable-read"),
)
#: Levels that a system may promise, as the checker names them, the usual one first; also with the
#: order of each process, and with that of real time.
LEVELS: Final = (
    *("serializable", *_PLAIN),
    *("strong-session-serializable", *(f"strong-session-{level}" for level in _PLAIN)),
    *("strict-serializable", *(f"strong-{level}" for level in _PLAIN)),
    *("monotonic-atomic-view", "read-atomic", "causal"),
)
#: One part of a transaction: function, key, value; null for what is read.
Part = list[Any]

#: Its one function.
TRANSACTIONS: Final[Functions] = {"txn": Function("changes", reading_parts=("r",))}


class LaneKeys:
    """Names the keys of the lanes, and remembers which were used."""

    def __init__(self, seed: int, writes_per_round: float) -> None:
        """``writes_per_round``: over all slots and lanes, while each slot has one operation."""
        total = sum(weight for _, weight in LANE_WEIGHTS)
        self._seed = seed
        self._writes_per_round = [writes_per_round * weight / total for _, weight in LANE_WEIGHTS]
        #: Of each lane the rounds from which on its next keys live.
        self._ends: list[list[int]] = [[] for _ in LANE_WEIGHTS]
        #: Keys in the order of their first use; the values mean nothing.
        self._used: dict[str, None] = {}

    def key(self, lane: int, n: int) -> str:
        """Return the key that lives in a lane in round ``n``."""
        ends = self._ends[lane]
        while not ends or ends[-1] <= n:
            writes = self.writes_drawn(lane, len(ends))
            rounds = max(1, round(writes / self._writes_per_round[lane]))
            ends.append((ends[-1] if ends else 0) + rounds)
        name = f"{lane}-{bisect_right(ends, n)}"
        self._used[name] = None
        return name

    def writes_drawn(self, lane: int, generation: int) -> int:
        """Return after about how many writes a key is given up."""
        # No slot is negative: these numbers are no operation's.
        return spread(Draws(self._seed, -1 - lane, generation), WRITES_MIN, WRITES_DOUBLINGS)

    def used(self) -> tuple[str, ...]:
        """Every key named so far, in the order of their first use."""
        return tuple(self._used)


class TransactionWorkload:
    """Base: draws parts, and reads every key at the end."""

    name: ClassVar[str]
    #: Kind of object that its keys are, by which the checker knows them.
    objects: ClassVar[str]
    #: Function of the parts that write.
    writes: ClassVar[str]
    functions: Functions = TRANSACTIONS

    def __init__(self, seed: int, slots: int, level: str) -> None:
        self._seed, self._slots, self._level = seed, slots, level
        self.checkers: tuple[str, ...] = checkers_of(self.objects, level)
        self._keys = LaneKeys(seed, slots * self.writes_per_transaction())

    @classmethod
    def of(cls, seed: int, slots: int, readers: frozenset[int], options: dict[str, str]) -> Self:
        """Read the user's options: ``level`` is the promise that the history is held to."""
        return cls(seed, slots, chosen(cls.name, options, {"level": LEVELS})["level"])

    def writes_per_transaction(self) -> float:
        """Return the mean of the parts that write."""
        return (1 + PARTS_MAX) / 2 / 2

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot: 1 to 8 parts, half of which read."""
        length = 1 + self._draws(slot, n, 0).below(PARTS_MAX)
        return Operation("txn", None, [self._part(slot, n, place) for place in range(length)])

    def _part(self, slot: int, n: int, place: int) -> Part:
        draws = self._draws(slot, n, place + 1)
        key = self._keys.key(draws.weighted(LANE_WEIGHTS), n)
        if draws.below(2):
            return [self.writes, key, self.numbered(slot, n, place)]
        return ["r", key, None]

    def _draws(self, slot: int, n: int, purpose: int) -> Draws:
        """Return the numbers of an operation as a whole (0), or of its part ``purpose - 1``."""
        return Draws(self._seed, slot, n * (PARTS_MAX + 1) + purpose)

    def numbered(self, slot: int, n: int, place: int) -> int:
        """Return a number that no other part of the run has, from 1."""
        return (n * self._slots + slot) * PARTS_MAX + place + 1

    def completed(self, operation: Operation, completion: Completion) -> None:
        """No outcome moves a key: those that are unknown cost the checker little."""

    def final_reads(self) -> tuple[Operation, ...]:
        """Every key that was used, several to a transaction."""
        return reads_of(self._keys.used())

    def at_observer(self, final_read: Operation) -> Operation | None:
        """Only nodes that vote are asked."""
        del final_read
        return None

    def options(self) -> dict[str, Any]:
        """Return the options in force."""
        return {"level": self._level}


def checkers_of(objects: str, level: str = LEVELS[0]) -> tuple[str, ...]:
    """Return the checkers of transactions on such objects, at a level."""
    return (f"transactions:{objects}:{level}", "split-brain")


def reads_of(keys: Sequence[str]) -> tuple[Operation, ...]:
    """Return transactions that read each of these keys once."""
    return tuple(
        Operation("txn", None, [["r", key, None] for key in keys[start : start + PARTS_MAX]])
        for start in range(0, len(keys), PARTS_MAX)
    )
