"""A set: add and remove one element, ask for one, read all; starts empty."""

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from typing import Any

from splitbrain.checker.models.model import Call, KeyedModel
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import shown, wrong_echo


class ElementSet(KeyedModel):
    """A set whose reads answer every element, in any order, and ``contains`` one of them."""

    name = "set"
    functions = frozenset({"add", "remove", "read", "contains"})
    initial = frozenset[Any]()
    pure_functions = frozenset({"read", "contains"})
    answerless_functions = frozenset({"add", "remove"})
    bounded_states = True

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        """Answer exactly the elements present; None stands for none."""
        if call.f == "read":
            return not call.known or state == frozenset(call.result or ()), state
        if call.f == "contains":
            return not call.known or (call.argument in state) == bool(call.result), state
        if call.f == "add":
            return True, state | {call.argument}
        return True, state - {call.argument}

    def problem_with(self, operation: PairedOperation) -> str | None:
        """Require a list from a read, true or false from ``contains``."""
        result: object = operation.result
        if operation.f == "read":
            if isinstance(result, (list, tuple, AbstractSet, type(None))):
                return None
            return f"the answer of a read is a list of elements, and not {shown(result)}"
        if operation.f == "contains":
            if operation.type != "ok" or isinstance(result, bool):
                return None
            return f"the answer of contains is true or false, and not {shown(result)}"
        return wrong_echo(operation)

    def droppable(
        self, open_calls: Collection[Call], known_calls: Collection[Call]
    ) -> frozenset[Call]:
        """Reads, open adds of what no answer shows, open removes of what no answer misses.

        Between the add and the next remove (the remove and the next add) every answer about the
        element would be of the kind that does not occur; after that nothing is left of the call.
        """
        reads = [frozenset(call.result or ()) for call in known_calls if call.f == "read"]
        lookups = [call for call in known_calls if call.f == "contains"]
        present = {call.argument for call in lookups if call.result}.union(*reads)
        absent = {call.argument for call in lookups if not call.result}

        def useful(call: Call) -> bool:
            if call.f == "add":
                return call.argument in present
            element = call.argument
            return element in absent or any(element not in shown for shown in reads)

        return frozenset(call for call in open_calls if self.is_pure(call) or not useful(call))
