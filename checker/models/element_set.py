"""A set: add and remove one element, read all; starts empty."""

from collections.abc import Collection
from typing import Any

from checker.models.model import Call, Model


class ElementSet(Model):
    """A set whose reads answer every element, in any order."""

    name = "set"
    functions = frozenset({"add", "remove", "read"})
    initial = frozenset[Any]()
    pure_functions = frozenset({"read"})
    answerless_functions = frozenset({"add", "remove"})
    bounded_states = True

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        """A read answers exactly the elements present; None stands for none."""
        if call.f == "read":
            return not call.known or state == frozenset(call.result or ()), state
        if call.f == "add":
            return True, state | {call.argument}
        return True, state - {call.argument}

    def droppable(
        self, open_calls: Collection[Call], known_calls: Collection[Call]
    ) -> frozenset[Call]:
        """Reads, and open adds of elements that no read answered."""
        seen = {
            element for call in known_calls if call.f == "read" for element in call.result or ()
        }
        return super().droppable(open_calls, known_calls) | frozenset(
            call for call in open_calls if call.f == "add" and call.argument not in seen
        )
