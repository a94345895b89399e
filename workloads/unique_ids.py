"""Ids that a system gives out, each once: one generator, asked by all slots."""

from typing import Any, Final

from splitbrain.contracts.operations import Completion, Operation
from splitbrain.history.functions import Function, Functions
from splitbrain.workloads.keys import chosen

_GENERATOR: Final = "ids"
_FUNCTIONS: Final[Functions] = {"generate": Function("changes")}


class UniqueIdsWorkload:
    """Requests for ids, and nothing to read at the end."""

    name = "unique-ids"
    checkers: tuple[str, ...] = ("unique-ids", "split-brain")
    functions: Functions = _FUNCTIONS

    @classmethod
    def of(
        cls, seed: int, slots: int, readers: frozenset[int], options: dict[str, str]
    ) -> "UniqueIdsWorkload":
        """There is nothing to choose or to draw."""
        chosen(cls.name, options, {})
        return cls()

    def operation(self, slot: int, n: int) -> Operation:
        """Return the n-th operation of a slot: all are alike."""
        return Operation("generate", _GENERATOR, None)

    def completed(self, operation: Operation, completion: Completion) -> None:
        """Nothing depends on outcomes: an unknown one costs the checker nothing."""

    def final_reads(self) -> tuple[Operation, ...]:
        """An id that was given out cannot be read."""
        return ()

    def at_observer(self, final_read: Operation) -> Operation | None:
        """There is nothing to read."""
        return None

    def options(self) -> dict[str, Any]:
        """There are none."""
        return {}


WORKLOAD: Final = UniqueIdsWorkload
