"""Operations of a test and of its workload, as one ``Workload``. Pure.

A test takes the workload's operations in pieces, as often as it loads the cluster, and adds its own
on keys of its own; both are read at the end.
"""

from collections import Counter
from typing import Any

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.history.functions import effect_of
from splitbrain.workloads.workload import Workload


class SteppedWorkload:
    """A workload whose slots go on where the load before left them."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self.name, self.checkers = workload.name, workload.checkers
        self.functions = workload.functions
        self._performed: Counter[int] = Counter()
        #: Keys of the test, in the order of their first use.
        self._own_keys: dict[str | None, None] = {}
        #: Acknowledged operations of the workload that change something.
        self.changes = 0

    def own(self, operation: Operation) -> None:
        """Note an operation of the test, before it is asked for.

        Raises:
            UsageError: the workload has no such function.
        """
        if operation.f not in self.functions:
            raise UsageError(
                f"the workload {self.name!r} has no operation {operation.f!r}",
                or_nearest(operation.f, self.functions, "operations"),
            )
        self._own_keys[operation.key] = None

    def operation(self, slot: int, n: int) -> Operation:
        """Return the slot's next operation; ``n`` counts those of one load alone."""
        del n
        place = self._performed[slot]
        self._performed[slot] += 1
        return self._workload.operation(slot, place)

    def completed(self, operation: Operation, completion: Completion) -> None:
        """Told each outcome of the workload's own."""
        self._workload.completed(operation, completion)
        if completion.type == "ok":
            argument, result = operation.value, completion.value
            effect = effect_of(self.functions, operation.f, argument, result)
            self.changes += effect in ("changes", "records")

    def final_reads(self) -> tuple[Operation, ...]:
        """Read everything that was touched, by the workload or by the test."""
        reads = self._workload.final_reads()
        function = getattr(self._workload, "final_function", None)
        if function is None:
            return reads
        known = {read.key for read in reads}
        own = [key for key in self._own_keys if key not in known]
        return (*reads, *(Operation(function, key, None) for key in own))

    def options(self) -> dict[str, Any]:
        """As the workload has them."""
        return self._workload.options()

    def at_observer(self, final_read: Operation) -> Operation | None:
        """As the workload has it."""
        return self._workload.at_observer(final_read)
