"""Keys of operations: a few lanes live at once, and each moves to a fresh key in time.

A checker's work grows steeply with the operations on one key, above all with those whose outcome
is unknown, so keys are given up after about 200 operations or after 20 ``info``. The first is
counted by a slot's own operations, so that it is a function of the place; only the second depends
on what the system answered, and it stands in the history in the key's name (design, section 4).
"""

from collections import Counter
from typing import Any, ClassVar, Self

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.operations import Completion, Operation

#: Operations on one key, over all slots, after which it is given up.
OPERATIONS_PER_KEY = 200
#: Operations of unknown outcome after which a key is given up early.
INFO_PER_KEY = 20
#: Instead of either, for keys that are kept to the end of the run.
NEVER = 1 << 62


class KeyPlace(msgspec.Struct, frozen=True):
    """A key before early rotation: a lane and the generation that the place says."""

    lane: int
    generation: int


class KeyRotation:
    """Names keys; counts the ``info`` of each and moves on from those that had too many."""

    def __init__(
        self,
        prefix: str,
        *,
        lanes: int,
        slots: int,
        operations_per_key: int = OPERATIONS_PER_KEY,
        info_per_key: int = INFO_PER_KEY,
    ) -> None:
        self._prefix = prefix
        self._info_per_key = info_per_key
        # A slot spreads its operations over the lanes, and all slots work on each lane.
        #: Operations of one slot in one generation.
        self.span = max(1, operations_per_key * lanes // slots)
        self._info: Counter[str] = Counter()
        self._early: Counter[KeyPlace] = Counter()
        #: Keys in the order of their first use; the values mean nothing.
        self._used: dict[str, None] = {}

    def key(self, lane: int, n: int) -> str:
        """Return the key of the n-th operation of any slot in this lane."""
        generation = n // self.span
        name = f"{self._prefix}{lane}-{generation}"
        if self._early and (early := self._early[KeyPlace(lane, generation)]):
            name += f"-{early}"
        self._used[name] = None
        return name

    def saw_info(self, key: str) -> None:
        """Count an unknown outcome, here or elsewhere; at its limit a key is given up."""
        self._info[key] += 1
        if self._info[key] == self._info_per_key:
            self._early[self._place(key)] += 1

    def _place(self, key: str) -> KeyPlace:
        """The place that a key's name tells, also of one that only another copy has named yet."""
        lane, generation, *_ = key.removeprefix(self._prefix).split("-")
        return KeyPlace(int(lane), int(generation))

    def used(self) -> tuple[str, ...]:
        """Every key named so far, in the order of their first use."""
        return tuple(self._used)


class KeyedWorkload:
    """Base of workloads over the keys of a rotation, which are read at the end."""

    #: Function of the final reads.
    final_function = "read"

    def __init__(self, seed: int, slots: int, keys: KeyRotation) -> None:
        self._seed = seed
        self._slots = slots
        self._keys = keys

    def completed(self, operation: Operation, completion: Completion) -> None:
        """Give a key up that had too many unknown outcomes."""
        if completion.type == "info" and operation.key is not None:
            self._keys.saw_info(operation.key)

    def final_reads(self) -> tuple[Operation, ...]:
        """Every key that was used."""
        return tuple(Operation(self.final_function, key, None) for key in self._keys.used())

    def at_observer(self, final_read: Operation) -> Operation | None:
        """Only nodes that vote are asked."""
        del final_read
        return None


class PlainWorkload(KeyedWorkload):
    """Base of those without options, whose slots all do the same; ``prefix`` names their keys."""

    name: ClassVar[str]
    prefix: ClassVar[str]
    #: Keys that live at once: two slots of ten for each. With more of them, a client that looks
    #: before it changes meets another's change most of the time, and a lock is nearly always held.
    lanes: ClassVar[int] = 5
    operations_per_key: ClassVar[int] = OPERATIONS_PER_KEY

    @classmethod
    def of(cls, seed: int, slots: int, readers: frozenset[int], options: dict[str, str]) -> Self:
        """There is nothing to choose, and no slot only reads."""
        chosen(cls.name, options, {})
        given = cls.operations_per_key
        keys = KeyRotation(cls.prefix, lanes=cls.lanes, slots=slots, operations_per_key=given)
        return cls(seed, slots, keys)

    def options(self) -> dict[str, Any]:
        """There are none."""
        return {}

    def numbered(self, slot: int, n: int) -> int:
        """Return a number that no other operation of the run has, from 1."""
        return n * self._slots + slot + 1


def chosen(
    workload: str, options: dict[str, str], allowed: dict[str, tuple[str, ...]]
) -> dict[str, str]:
    """Every allowed option with its value, the first allowed value where the user chose none.

    Raises:
        UsageError: an option or a value does not exist.
    """
    for name, value in options.items():
        if name not in allowed:
            raise UsageError(
                f"the workload {workload!r} has no option {name!r}",
                f"Its options are: {', '.join(sorted(allowed)) or 'none'}",
            )
        if value not in allowed[name]:
            raise UsageError(
                f"the option {name!r} of the workload {workload!r} cannot be {value!r}",
                f"Choose one of: {', '.join(allowed[name])}",
            )
    return {name: options.get(name, values[0]) for name, values in allowed.items()}
