"""A counter: add a number to it, read it, or both at one moment; starts at 0."""

from collections.abc import Collection
from typing import Any

from splitbrain.checker.models.model import Call, KeyedModel
from splitbrain.history.edn_values import is_number, size_of
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import shown, wrong_echo


class Counter(KeyedModel):
    """A counter; ``add`` and ``add-and-get`` take a number of either sign."""

    name = "counter"
    functions = frozenset({"add", "add-and-get", "read"})
    initial = 0
    pure_functions = frozenset({"read"})
    answerless_functions = frozenset({"add"})

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        """Add the number; answers are the sum so far, None stands for 0."""
        following = state if call.f == "read" else state + size_of(call.argument)
        if call.f == "add" or not call.known:
            return True, following
        return following == size_of(call.result or 0), following

    def problem_with(self, operation: PairedOperation) -> str | None:
        """Require numbers as arguments and answers."""
        if operation.f != "read" and not is_number(operation.argument):
            return f"the argument of {operation.f} is a number, and not {shown(operation.argument)}"
        if operation.f == "add":
            return wrong_echo(operation)
        if operation.result is None or is_number(operation.result):
            return None
        return f"the answer of {operation.f} is a number, and not {shown(operation.result)}"

    def is_pure(self, call: Call) -> bool:
        """Hold for reads, and for adding 0."""
        return call.f == "read" or call.argument == 0

    def droppable(
        self, open_calls: Collection[Call], known_calls: Collection[Call]
    ) -> frozenset[Call]:
        """Open calls after which no answer could come any more.

        Where everything is counted up, an answer never exceeds the highest one, so what adds more
        than that can stand only behind all answers; the same downwards. Where both happen, any
        open add may have enabled any answer.
        """
        answers = [call.result or 0 for call in known_calls if call.f != "add"]
        if not answers:
            return frozenset(open_calls)
        added = [call.argument for call in (*open_calls, *known_calls) if not self.is_pure(call)]
        lowest, highest = min(answers), max(answers)
        rising, falling = all(n > 0 for n in added), all(n < 0 for n in added)
        return frozenset(
            call
            for call in open_calls
            if self.is_pure(call)
            or (rising and call.argument > highest)
            or (falling and call.argument < lowest)
        )
