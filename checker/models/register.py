"""Registers (one, or several at one moment), and a store of strings (put, get, append by key).

A register starts as None ("never written"), a string as the empty one. A refused compare-and-set is
an observation: the value was not the expected one. Several registers are read and written by
``txn``; its argument is a list of ``["r", name, null]`` and ``["w", name, value]`` in order, its
answer the same list with every read filled in (``read`` and ``write`` are understood too). A read
sees writes before it in its own operation. Sources: Knossos' multi-register; Jepsen's transactions.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from typing import Any, cast

from splitbrain.checker.models.model import ANY, Call, KeyedModel, Moves, is_list_of, text_of
from splitbrain.history.edn_values import Name
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import is_same, shown, wrong_echo, wrong_shape


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
        """Answer a read with the last value; let a cas succeed where it expects that."""
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

    def alike(self, call: Call) -> Hashable:
        """Tell refused compare-and-sets by what they expected."""
        is_refused = call.f == "cas" and call.known and not succeeded(call)
        return ("refused", call.argument[0]) if is_refused else call

    def moves(self, call: Call) -> Moves | None:
        """Need the value that was read or expected, leave the one that is set."""
        if call.f == "read":
            return Moves(needs=call.result) if call.known else Moves()
        if call.f == "write":
            return Moves(leaves=call.argument)
        expected, new = call.argument
        if call.known and not succeeded(call):
            return Moves(bars=expected)
        needs, leaves = expected if call.known else ANY, ANY if expected == new else new
        return Moves(needs, leaves, acts=expected)

    def problem_with(self, operation: PairedOperation) -> str | None:
        """Require a cas' expected and new value, and answers that repeat them."""
        return wrong_echo(operation) if operation.f == "write" else wrong_shape(operation)

    def is_pure(self, call: Call) -> bool:
        """Hold for reads, refused compare-and-sets, and those that set the value they expect."""
        if call.f != "cas":
            return call.f == "read"
        return call.argument[0] == call.argument[1] or (call.known and not succeeded(call))

    def describe(self, call: Call) -> str:
        """Name a cas' expected and new value and its outcome."""
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
        # An open cas whose new value can be met needs its expected value to be met.
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
    """Return whether a known compare-and-set took effect; true without a third part."""
    if not isinstance(call.result, tuple):
        return True
    result = cast("tuple[object, ...]", call.result)  # pyright: ignore[reportUnknownMemberType]
    return len(result) < 3 or bool(result[2])


def _value_set(call: Call) -> Any:
    return call.argument if call.f == "write" else call.argument[1]


class KeyValue(KeyedModel):
    """A string under a key that is put, appended to and got; starts empty."""

    name = "kv"
    functions = frozenset({"get", "put", "append"})
    initial = ""
    pure_functions = frozenset({"get"})
    answerless_functions = frozenset({"put", "append"})
    overwriting_functions = frozenset({"put"})
    register_functions = ("get", "put")
    #: Once folded: beginnings of answers, and one more.
    bounded_states = True

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        """Answer a get with all text appended since the last put; None is the empty string."""
        if call.f == "get":
            return not call.known or state == (call.result or ""), state
        argument = call.argument or ""
        return True, argument if call.f == "put" else state + argument

    def problem_with(self, operation: PairedOperation) -> str | None:
        """Require text everywhere."""
        text = operation.result if operation.f == "get" else operation.argument
        if isinstance(text, str | None):
            return None if operation.f == "get" else wrong_echo(operation)
        return f"values are text, and {operation.f} has {shown(text)}"

    def folding(self, calls: Collection[Call]) -> Callable[[Any], Hashable] | None:
        """Give one state for all texts that no answer begins with: only a put ends any of them."""
        answers = sorted({""} | {c.result or "" for c in calls if c.f == "get" and c.known})
        # Of answers that begin with one another the longest alone.
        longest = [
            answer
            for answer, after in zip(answers, [*answers[1:], None], strict=True)
            if after is None or not after.startswith(answer)
        ]

        def begins_an_answer(text: str) -> bool:
            place = bisect_left(longest, text)
            return place < len(longest) and longest[place].startswith(text)

        unseen = "(text that no get answered)"
        while begins_an_answer(unseen):
            unseen += ")"
        return lambda text: text if begins_an_answer(text) else unseen

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


_WRITES = frozenset({"w", "write"})
_KINDS = _WRITES | {"r", "read"}


class MultiRegister(KeyedModel):
    """Several registers as one object; ``key``, where there is one, names the whole group."""

    name = "multi-register"
    functions = frozenset({"txn"})
    #: Pairs of name and value, without registers that are None.
    initial = frozenset[Any]()
    bounded_states = True

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        """Answer each read with the last value written before it, in this operation or earlier."""
        values: dict[Hashable, Any] = dict(state)
        for f, name, value in _parts(call):
            if f in _WRITES:
                values[name] = value
            elif call.known and values.get(name) != value:
                return False, state
        return True, frozenset((name, value) for name, value in values.items() if value is not None)

    def problem_with(self, operation: PairedOperation) -> str | None:
        """Require an answer that repeats the argument with its reads filled in."""
        argument: object = operation.argument
        if not isinstance(argument, (list, tuple)):
            return f"the argument of a txn is a list, and not {shown(argument)}"
        parts = cast("Sequence[Any]", argument)
        if not all(is_list_of(part, 3) and _kind(part[0]) in _KINDS for part in parts):
            return 'the parts of a txn are ["r", name, null] and ["w", name, value]'
        if operation.type == "ok" and not _answers(parts, operation.result):
            return "the answer of a txn is its argument with the values read in their places"
        return None

    def is_pure(self, call: Call) -> bool:
        """Hold for transactions that only read."""
        return all(f not in _WRITES for f, _, _ in _parts(call))

    def droppable(
        self, open_calls: Collection[Call], known_calls: Collection[Call]
    ) -> frozenset[Call]:
        """Those that leave behind nothing that an answer shows.

        Writes ask nothing, so an open operation enables only the answers that hold its values.
        """
        read = {
            (name, value)
            for call in known_calls
            for f, name, value in _parts(call)
            if f not in _WRITES
        }
        return frozenset(call for call in open_calls if read.isdisjoint(_left_behind(call)))


def _parts(call: Call) -> Iterator[tuple[str, Hashable, Any]]:
    parts = call.result if call.known else call.argument
    return ((_kind(f), name, value) for f, name, value in parts)


def _kind(f: Any) -> Any:
    """Return the kind as text, even if it was read as a keyword."""
    return f.text if type(f) is Name and f.kind == "keyword" else f


def _left_behind(call: Call) -> set[tuple[Hashable, Any]]:
    return set({name: value for f, name, value in _parts(call) if f in _WRITES}.items())


def _answers(parts: Sequence[Any], result: object) -> bool:
    if not is_list_of(result, len(parts)):
        return False
    return all(
        is_list_of(answer, 3)
        and answer[0] == part[0]
        and is_same(part[1], answer[1])
        and (_kind(part[0]) not in _WRITES or is_same(part[2], answer[2]))
        for part, answer in zip(parts, cast("Sequence[Any]", result), strict=True)
    )
