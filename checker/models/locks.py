"""Lock, and register behind the fencing tokens of one.

The lock (acquire, release) starts free. Its argument names the holder (a client, a session); None
where there is one kind of holder only. A refusal is ``ok`` with result false: the acquire found the
lock held, the release found it not held by its client.

Each ``write`` of the register has the argument ``[token, value]`` and the answer ``[token, value,
accepted]``: it is accepted unless a write with a higher token was accepted before, and refused only
then. Two clients that believed to hold the lock at once are no violation: fencing is for that.
Source: Kleppmann 2016, "How to do distributed locking" (fencing tokens).
"""

from collections.abc import Collection
from typing import Any, cast

from splitbrain.checker.models.model import Call, KeyedModel, granted, is_list_of, refused, text_of
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
        """Grant an acquire of a free lock and a release by the holder; refuse others."""
        holder = (call.argument,)
        possible = state == (() if call.f == "acquire" else holder)
        if refused(call):
            return not possible, state
        if not possible:
            return not call.known, state
        return True, holder if call.f == "acquire" else ()

    def problem_with(self, operation: PairedOperation) -> str | None:
        """Require nothing, the holder, a token, or whether it was granted as the answer."""
        result: object = operation.result
        if result is None or isinstance(result, bool) or is_number(result):
            return None
        if is_same(operation.argument, result):
            return None
        if is_list_of(result, 3) and isinstance(cast("list[object]", result)[2], bool):
            return None
        return f"the answer of {operation.f} is true, false or a token, and not {shown(result)}"

    def answer_of(self, operation: PairedOperation) -> object:
        """Return whether it was granted."""
        return granted(operation.result)

    def is_pure(self, call: Call) -> bool:
        """Hold for refusals."""
        return refused(call)

    def describe(self, call: Call) -> str:
        """Name the client, its request, and whether it was granted."""
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


class FencedRegister(KeyedModel):
    """A register whose accepted writes never go back to a lower token; reads answer the value."""

    name = "fenced-register"
    functions = frozenset({"read", "write"})
    #: Highest token accepted and the value written with it.
    initial = (None, None)
    pure_functions = frozenset({"read"})
    bounded_states = True

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        """Accept a write with the highest token so far or a higher one."""
        highest, value = state
        if call.f == "read":
            return not call.known or call.result == value, state
        token, _ = call.argument
        possible = highest is None or token >= highest
        if refused(call):
            return not possible, state
        return possible or not call.known, call.argument if possible else state

    def problem_with(self, operation: PairedOperation) -> str | None:
        """Require a token that is a number, and whether the write was accepted as its answer."""
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
        """Return whether a write was accepted."""
        return granted(operation.result) if operation.f == "write" else operation.result

    def is_pure(self, call: Call) -> bool:
        """Hold for reads and refused writes."""
        return call.f == "read" or refused(call)

    def describe(self, call: Call) -> str:
        """Name a write's token and whether it was accepted."""
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
