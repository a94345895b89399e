"""A model as a user writes one: a name, the kinds, one step, and not a hint to the search."""

from typing import Any

from splitbrain.checker.models.model import Call, KeyedModel


class OwnRegister(KeyedModel):
    """A register with compare-and-set, told in a few lines."""

    name = "own-register"
    functions = frozenset({"read", "write", "cas"})

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        """The answer that the state gives, where there is one."""
        if call.f == "read":
            return not call.known or call.result == state, state
        if call.f == "write":
            return True, call.argument
        expected, new = call.argument
        matches = state == expected
        if call.known and matches != call.result[2]:
            return False, state
        return True, new if matches else state
