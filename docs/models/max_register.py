"""A model of one's own: a register that keeps the highest number ever written to it."""

from typing import Any

from splitbrain.checker.models.model import Call, KeyedModel
from splitbrain.checker.models.queues import BoundedFifoQueue


class MaxRegister(KeyedModel):
    """Keys are judged apart, because it is a KeyedModel; from a plain Model they are not."""

    name = "max-register"
    functions = frozenset({"write", "read"})
    initial = 0
    # All else is optional and makes the search faster: reads change nothing, and a write is
    # answered with no more than "done".
    pure_functions = frozenset({"read"})
    answerless_functions = frozenset({"write"})

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        """Whether the call may happen in this state with its answer, and the state after it."""
        if call.f == "write":
            return True, max(state, call.argument)
        return not call.known or call.result == state, state


class QueueOfThree(BoundedFifoQueue):
    """A built-in one, made narrower."""

    name = "queue-of-three"
    capacity = 3
