"""Base of workloads whose operations follow from seed, slot and number alone, without options."""

from typing import Any, Self

from splitbrain.contracts.operations import Completion, Operation
from splitbrain.workloads.keys import chosen


class PlainWorkload:
    """Has no options, no slot that only reads, and nothing for nodes that do not vote."""

    name: str

    def __init__(self, seed: int, slots: int) -> None:
        self._seed, self._slots = seed, slots

    @classmethod
    def of(cls, seed: int, slots: int, readers: frozenset[int], options: dict[str, str]) -> Self:
        """There are no options; no slot only reads."""
        chosen(cls.name, options, {})
        return cls(seed, slots)

    def completed(self, operation: Operation, completion: Completion) -> None:
        """Nothing depends on outcomes: unknown ones cost the checker nothing."""

    def at_observer(self, final_read: Operation) -> Operation | None:
        """Only nodes that vote are asked."""
        del final_read
        return None

    def options(self) -> dict[str, Any]:
        """There are none."""
        return {}
