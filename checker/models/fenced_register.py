"""A register behind fencing tokens: each write carries the token of the lock that it believes in.

A ``write`` has the argument ``[token, value]`` and the answer ``[token, value, accepted]``: it is
accepted unless a write with a higher token was accepted before, and refused only then. Whether two
clients believed to hold the lock at once is not this model's business: fencing is there for that.

Source: Kleppmann 2016, "How to do distributed locking" (fencing tokens).
"""

from collections.abc import Collection
from typing import Any

from splitbrain.checker.models.model import Call, KeyedModel, granted, is_list_of, refused, text_of
from splitbrain.history.edn_values import is_number
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import is_same, shown


class FencedRegister(KeyedModel):
    """A register whose accepted writes never go back to a lower token; reads answer the value."""

    name = "fenced-register"
    functions = frozenset({"read", "write"})
    #: Highest token accepted and the value written with it.
    initial = (None, None)
    pure_functions = frozenset({"read"})
    bounded_states = True

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        """A write is accepted with the highest token so far or a higher one."""
        highest, value = state
        if call.f == "read":
            return not call.known or call.result == value, state
        token, _ = call.argument
        possible = highest is None or token >= highest
        if refused(call):
            return not possible, state
        return possible or not call.known, call.argument if possible else state

    def problem_with(self, operation: PairedOperation) -> str | None:
        """A write needs a token that is a number, and answers whether it was accepted."""
        if operation.f == "read":
            return None
        argument, result = operation.argument, operation.result
        if not is_list_of(argument, 2) or not is_number(argument[0]):
            return "the argument of a write is [token, value], and the token is a number"
        if result is None or isinstance(result, bool) or is_same(argument, result):
            return None
        if is_list_of(result, 3) and isinstance(result[2], bool) and is_same(argument, result[:2]):
            return None
        return (
            f"it is asked {shown(argument)} and answers {shown(result)}, "
            "which is no [token, value, accepted]"
        )

    def answer_of(self, operation: PairedOperation) -> object:
        """Of a write, whether it was accepted."""
        return granted(operation.result) if operation.f == "write" else operation.result

    def is_pure(self, call: Call) -> bool:
        """Reads and refused writes."""
        return call.f == "read" or refused(call)

    def describe(self, call: Call) -> str:
        """A write says its token and whether it was accepted."""
        if call.f == "read":
            return super().describe(call)
        token, value = (text_of(part) for part in call.argument)
        answer = "no answer" if not call.known else "refused" if refused(call) else "accepted"
        return f"write {value} with token {token} ({answer})"

    def droppable(
        self, open_calls: Collection[Call], known_calls: Collection[Call]
    ) -> frozenset[Call]:
        """Open writes whose value no read answered and whose token refused nobody.

        Without it tokens are lower, so whatever was accepted still is.
        """
        read = {call.result for call in known_calls if call.f == "read"}
        refused_tokens = [call.argument[0] for call in known_calls if refused(call)]
        lowest = min(refused_tokens, default=None)
        return frozenset(
            call
            for call in open_calls
            if call.f == "read"
            or (call.argument[1] not in read and (lowest is None or call.argument[0] <= lowest))
        )
