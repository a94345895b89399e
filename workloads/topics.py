"""Topics that are created, described and deleted, and viewed at brokers that follow the log.

Creates of one topic ask for different numbers of partitions, so that a description tells which of
them it saw; the numbers are small, since a controller writes a record for each. Slots that are
pinned to a broker view instead of describing: a broker answers from its own image, which may be old
but must never go back. That is all they do, unless ``brokers=change``: then they create and delete
as well, and the broker hands it on. Topics are given up early: with every create the numbers grow.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from splitbrain.contracts.draws import Draws
from splitbrain.contracts.operations import Operation
from splitbrain.history.functions import CREATE, DELETE, READ, Functions
from splitbrain.workloads.keys import KeyedWorkload, KeyRotation, chosen

#: Topics that live at once.
LANES = 2
#: Operations on one topic, views apart.
OPERATIONS_PER_TOPIC = 60
_MIX = (("create", 4), ("delete", 3), ("describe", 3))
#: Operations of slots that are pinned to a broker.
_OPTIONS: Final = {"brokers": ("view", "change")}
#: Generations of topics whose numbers of partitions are remembered.
_REMEMBERED = 8
_FUNCTIONS: Final[Functions] = {"create": CREATE, "delete": DELETE, "describe": READ, "view": READ}


class TopicsWorkload(KeyedWorkload):
    """Create, delete and describe over a few topics, and views of them."""

    name = "topics"
    checkers: tuple[str, ...] = (
        "linearizability:topics",
        "broker-views",
        "split-brain",
        "lost-commits",
    )
    functions: Functions = _FUNCTIONS
    final_function = "describe"

    def __init__(
        self, seed: int, slots: int, *, readers: frozenset[int], brokers: str = "view"
    ) -> None:
        """``readers``: the slots that are pinned to a broker."""
        self._viewers = readers
        self._brokers = brokers
        #: Slots that change nothing.
        self._readers = readers if brokers == "view" else frozenset[int]()
        keys = KeyRotation("t", lanes=LANES, slots=slots, operations_per_key=OPERATIONS_PER_TOPIC)
        super().__init__(seed, slots, keys)

    @classmethod
    def of(
        cls, seed: int, slots: int, readers: frozenset[int], options: dict[str, str]
    ) -> "TopicsWorkload":
        """``brokers``: what is done there."""
        brokers = chosen(cls.name, options, _OPTIONS)["brokers"]
        return cls(seed, slots, readers=readers, brokers=brokers)

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot."""
        lane, kind = _drawn(self._seed, slot, n)
        key = self._keys.key(lane, n)
        if slot in self._readers or (slot in self._viewers and kind == "describe"):
            return Operation("view", key, None)
        return Operation(kind, key, self._partitions(slot, n) if kind == "create" else None)

    def _partitions(self, slot: int, n: int) -> int:
        """Return the number of the create of its topic, from 1, in the order of places."""
        generation = n // self._keys.span
        numbers = _numbers(self._seed, self._slots, self._readers, self._keys.span, generation)
        return numbers[slot, n]

    def at_observer(self, final_read: Operation) -> Operation:
        """Return a topic as a broker shows it."""
        return Operation("view", final_read.key, None)

    def options(self) -> dict[str, Any]:
        """Return the options in force."""
        return {"brokers": self._brokers}


def _drawn(seed: int, slot: int, n: int) -> tuple[int, str]:
    draws = Draws(seed, slot, n)
    return draws.below(LANES), draws.weighted(_MIX)


@lru_cache(maxsize=_REMEMBERED)
def _numbers(
    seed: int, slots: int, readers: frozenset[int], span: int, generation: int
) -> Mapping[tuple[int, int], int]:
    """Slot and n of each create of a generation, to its number of partitions."""
    numbers: dict[tuple[int, int], int] = {}
    counts = [0] * LANES
    for n in range(generation * span, (generation + 1) * span):
        for slot in range(slots):
            lane, kind = _drawn(seed, slot, n)
            if kind == "create" and slot not in readers:
                counts[lane] += 1
                numbers[slot, n] = counts[lane]
    return numbers


WORKLOAD: Final = TopicsWorkload
