"""Topics that are created with a number of partitions, described and deleted; none at first.

A ``create`` has the number as its argument and the answer ``[number, created]``; a ``delete``
answers whether there was a topic, a ``describe`` its number of partitions, None where there is no
topic. A refusal (it exists already, there is none) is an observation.
"""

from collections.abc import Collection
from typing import Any, cast

from splitbrain.checker.models.model import Call, KeyedModel, is_list_of, refused, text_of
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import is_same, shown


class Topics(KeyedModel):
    """A topic under a name, that is there with its number of partitions, or is not there."""

    name = "topics"
    functions = frozenset({"create", "delete", "describe"})
    #: Answered by a broker from its own image, however old.
    unjudged_functions = frozenset({"view"})
    pure_functions = frozenset({"describe"})
    bounded_states = True

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        """Create a topic that is not there, delete one that is; refuse otherwise."""
        if call.f == "describe":
            return not call.known or state == call.result, state
        possible = (state is None) == (call.f == "create")
        if refused(call):
            return not possible, state
        if not possible:
            return not call.known, state
        return True, call.argument if call.f == "create" else None

    def problem_with(self, operation: PairedOperation) -> str | None:
        """Require a number of partitions from a create, and answers of their kinds."""
        argument, result = operation.argument, operation.result
        if operation.f == "create" and (
            not isinstance(argument, int) or isinstance(argument, bool)
        ):
            return "the argument of a create is a number of partitions"
        if operation.type != "ok":
            return None
        if operation.f == "create":
            fits = is_list_of(result, 2) and isinstance(result[1], bool)
            if fits and is_same(argument, result[0]):
                return None
            return f"the answer to a create is [number, created], and not {shown(result)}"
        if operation.f == "delete":
            if isinstance(result, bool):
                return None
            return f"the answer to a delete is true or false, and not {shown(result)}"
        if isinstance(result, int | None) and not isinstance(result, bool):
            return None
        return f"the answer to a describe is a number of partitions, and not {shown(result)}"

    def answer_of(self, operation: PairedOperation) -> object:
        """Return whether a create or delete was done."""
        if operation.f == "create":
            return bool(cast("list[object]", operation.result)[1])
        return operation.result

    def is_pure(self, call: Call) -> bool:
        """Hold for descriptions and refusals."""
        return call.f == "describe" or refused(call)

    def describe(self, call: Call) -> str:
        """Name the request, and whether it was done."""
        if call.f == "describe":
            return super().describe(call)
        answer = "no answer" if not call.known else "refused" if refused(call) else "done"
        with_ = "" if call.f == "delete" else f" with {text_of(call.argument)} partitions"
        return f"{call.f}{with_} ({answer})"

    def droppable(
        self, open_calls: Collection[Call], known_calls: Collection[Call]
    ) -> frozenset[Call]:
        """Open creates that no answer needs, and deletes where nothing was created.

        An open create enables descriptions of its number, refusals of other creates, and deletes.
        An open delete matters only where there was something to delete: after a create that is
        known to be done, or an open one that is needed.
        """
        described = {call.result for call in known_calls if call.f == "describe"}
        any_needed = any(
            refused(call) if call.f == "create" else not refused(call)
            for call in known_calls
            if call.f != "describe"
        )
        creates = {
            call
            for call in open_calls
            if call.f == "create" and (any_needed or call.argument in described)
        }
        created = bool(creates) or any(
            call.f == "create" and not refused(call) for call in known_calls
        )
        return frozenset(
            call
            for call in open_calls
            if call not in creates and not (call.f == "delete" and created)
        )
