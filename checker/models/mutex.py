"""A lock: acquire and release; starts free.

The argument names who asks (a client, a session); None where there is one kind of holder only. A
refusal is ``ok`` with result false: the acquire found the lock held, the release found it not held
by the one who asked.
"""

from collections.abc import Collection
from typing import Any, cast

from splitbrain.checker.models.model import Call, KeyedModel, granted, is_list_of, refused
from splitbrain.history.edn_values import is_number
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import is_same, shown


class Mutex(KeyedModel):
    """A lock of one holder, who alone can release it; it is not reentrant."""

    name = "mutex"
    functions = frozenset({"acquire", "release"})
    #: The holder in a tuple; empty while the lock is free.
    initial = ()
    bounded_states = True

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        """An acquire needs a free lock, a release the holder; otherwise they are refused."""
        holder = (call.argument,)
        possible = state == (() if call.f == "acquire" else holder)
        if refused(call):
            return not possible, state
        if not possible:
            return not call.known, state
        return True, holder if call.f == "acquire" else ()

    def problem_with(self, operation: PairedOperation) -> str | None:
        """It is answered with nothing, who asked, a token, or whether it was granted."""
        result: object = operation.result
        if result is None or isinstance(result, bool) or is_number(result):
            return None
        if is_same(operation.argument, result):
            return None
        if is_list_of(result, 3) and isinstance(cast("list[object]", result)[2], bool):
            return None
        return f"the answer of {operation.f} is true, false or a token, and not {shown(result)}"

    def answer_of(self, operation: PairedOperation) -> object:
        """Whether it was granted."""
        return granted(operation.result)

    def is_pure(self, call: Call) -> bool:
        """Refusals."""
        return refused(call)

    def describe(self, call: Call) -> str:
        """Who asked for what, and whether it was granted."""
        answer = "no answer" if not call.known else "refused" if refused(call) else "done"
        by = "" if call.argument is None else f" by {call.argument}"
        return f"{call.f}{by} ({answer})"

    def droppable(
        self, open_calls: Collection[Call], known_calls: Collection[Call]
    ) -> frozenset[Call]:
        """Open acquires that no release and no refusal needs, releases where nobody acquired.

        An open acquire enables the releases of its holder and the refusals of other acquires. An
        open release matters only where there was something to release: after an acquire that
        is known to be granted, or an open one that is needed.
        """
        refusals = any(call.f == "acquire" and refused(call) for call in known_calls)
        granted_calls = [call for call in known_calls if not refused(call)]
        released = {call.argument for call in granted_calls if call.f == "release"}
        acquires = {
            call
            for call in open_calls
            if call.f == "acquire" and (refusals or call.argument in released)
        }
        acquired = bool(acquires) or any(call.f == "acquire" for call in granted_calls)
        return frozenset(
            call
            for call in open_calls
            if call not in acquires and not (call.f == "release" and acquired)
        )
