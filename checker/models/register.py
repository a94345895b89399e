"""One register: read, write, compare-and-set; starts as None ("never written").

A refused compare-and-set is an observation: the value was another one than expected.
"""

from collections.abc import Collection
from typing import Any, cast

from splitbrain.checker.models.model import Call, KeyedModel, text_of
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import wrong_echo, wrong_shape


class CasRegister(KeyedModel):
    """A register with compare-and-set, answered ``[expected, new, succeeded]``."""

    name = "cas-register"
    functions = frozenset({"read", "write", "cas"})
    pure_functions = frozenset({"read"})
    answerless_functions = frozenset({"write"})
    overwriting_functions = frozenset({"write"})
    register_functions = ("read", "write")
    bounded_states = True

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        """A read answers the last value; a cas succeeds where it is the expected one."""
        if call.f == "read":
            return not call.known or state == call.result, state
        if call.f == "write":
            return True, call.argument
        expected, new = call.argument
        if not call.known:
            return True, new if state == expected else state
        if succeeded(call):
            return state == expected, new
        return state != expected, state

    def problem_with(self, operation: PairedOperation) -> str | None:
        """A cas needs the value that it expects and the one that it sets; answers repeat both."""
        return wrong_echo(operation) if operation.f == "write" else wrong_shape(operation)

    def is_pure(self, call: Call) -> bool:
        """Reads, refused compare-and-sets, and those that set what they expect."""
        if call.f != "cas":
            return call.f == "read"
        return call.argument[0] == call.argument[1] or (call.known and not succeeded(call))

    def describe(self, call: Call) -> str:
        """A cas says what it expected, what it would set, and what came of it."""
        if call.f != "cas":
            return super().describe(call)
        expected, new = (text_of(value) for value in call.argument)
        answer = "no answer" if not call.known else "done" if succeeded(call) else "refused"
        return f"cas {expected} to {new} ({answer})"

    def droppable(
        self, open_calls: Collection[Call], known_calls: Collection[Call]
    ) -> frozenset[Call]:
        """Open calls whose value no read, no compare-and-set and no refusal can have met."""
        observed = {call.result for call in known_calls if call.f == "read"}
        refused: set[Any] = set()
        for call in known_calls:
            if call.f == "cas":
                (observed if succeeded(call) else refused).add(call.argument[0])
        # An open cas passes on what it expects, if what it sets can be met.
        useful: set[Call] = set()
        rest = {call for call in open_calls if not self.is_pure(call)}
        while found := {
            call for call in rest if _value_set(call) in observed or refused - {_value_set(call)}
        }:
            useful |= found
            rest -= found
            observed.update(call.argument[0] for call in found if call.f == "cas")
        return frozenset(open_calls) - useful


class Register(CasRegister):
    """A register that is only read and written."""

    name = "register"
    functions = frozenset({"read", "write"})


def succeeded(call: Call) -> bool:
    """Whether a known compare-and-set took effect; an answer without a third part says it did."""
    if not isinstance(call.result, tuple):
        return True
    result = cast("tuple[object, ...]", call.result)  # pyright: ignore[reportUnknownMemberType]
    return len(result) < 3 or bool(result[2])


def _value_set(call: Call) -> Any:
    return call.argument if call.f == "write" else call.argument[1]
