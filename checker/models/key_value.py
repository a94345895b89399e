"""A store of strings: put, get and append, each on one key; a key starts as the empty string."""

from collections.abc import Collection
from typing import Any

from splitbrain.checker.models.model import Call, KeyedModel
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import shown, wrong_echo


class KeyValue(KeyedModel):
    """A string under a key that is put, appended to and got; starts empty."""

    name = "kv"
    functions = frozenset({"get", "put", "append"})
    initial = ""
    pure_functions = frozenset({"get"})
    answerless_functions = frozenset({"put", "append"})
    overwriting_functions = frozenset({"put"})
    register_functions = ("get", "put")

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        """A get answers all that was appended since the last put; None is the empty string."""
        if call.f == "get":
            return not call.known or state == (call.result or ""), state
        argument = call.argument or ""
        return True, argument if call.f == "put" else state + argument

    def problem_with(self, operation: PairedOperation) -> str | None:
        """Everything in the store is text."""
        told = operation.result if operation.f == "get" else operation.argument
        if isinstance(told, str | None):
            return None if operation.f == "get" else wrong_echo(operation)
        return f"values are text, and {operation.f} has {shown(told)}"

    def droppable(
        self, open_calls: Collection[Call], known_calls: Collection[Call]
    ) -> frozenset[Call]:
        """Gets, and open puts and appends whose text occurs in no answer.

        Until the next put every answer would hold the text; after it nothing is left of the call.
        """
        answers = [call.result or "" for call in known_calls if call.f == "get"]
        return super().droppable(open_calls, known_calls) | frozenset(
            call
            for call in open_calls
            if call.f != "get"
            and call.argument
            and not any(call.argument in answer for answer in answers)
        )
