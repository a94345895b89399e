"""Registers that one operation reads and writes several of, at one moment; all start as None.

The operation is ``txn``; its argument is a list of ``["r", name, null]`` and ``["w", name, value]``
in order, its answer the same list with every read filled in (``read`` and ``write`` are understood
too). A read sees what the same operation wrote before it. Sources: Knossos' multi-register;
Jepsen's transactions.
"""

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any, cast

from splitbrain.checker.models.model import Call, KeyedModel, is_list_of
from splitbrain.history.edn_values import Name
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import is_same, shown

_WRITES = frozenset({"w", "write"})
_KINDS = _WRITES | {"r", "read"}


class MultiRegister(KeyedModel):
    """Several registers as one object; ``key``, where there is one, names the whole group."""

    name = "multi-register"
    functions = frozenset({"txn"})
    #: Pairs of name and value; a register that is None has none.
    initial = frozenset[Any]()
    bounded_states = True

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        """Each read answers the last value written before it, here or earlier."""
        values: dict[Hashable, Any] = dict(state)
        for f, name, value in _parts(call):
            if f in _WRITES:
                values[name] = value
            elif call.known and values.get(name) != value:
                return False, state
        return True, frozenset((name, value) for name, value in values.items() if value is not None)

    def problem_with(self, operation: PairedOperation) -> str | None:
        """The answer repeats the argument with its reads filled in."""
        argument: object = operation.argument
        if not isinstance(argument, (list, tuple)):
            return f"the argument of a txn is a list, and not {shown(argument)}"
        asked = cast("Sequence[Any]", argument)
        if not all(is_list_of(part, 3) and _kind(part[0]) in _KINDS for part in asked):
            return 'the parts of a txn are ["r", name, null] and ["w", name, value]'
        if operation.type == "ok" and not _answers(asked, operation.result):
            return "the answer of a txn is its argument with the values read in their places"
        return None

    def is_pure(self, call: Call) -> bool:
        """Those that only read."""
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
    """Reads and writes in order, with the answers where they are known."""
    parts = call.result if call.known else call.argument
    return ((_kind(f), name, value) for f, name, value in parts)


def _kind(f: Any) -> Any:
    """Read or write; a keyword where the history has a value that is written like it."""
    return f.text if type(f) is Name and f.kind == "keyword" else f


def _left_behind(call: Call) -> set[tuple[Hashable, Any]]:
    """Names and the last value that the call writes to each."""
    return set({name: value for f, name, value in _parts(call) if f in _WRITES}.items())


def _answers(asked: Sequence[Any], result: object) -> bool:
    if not is_list_of(result, len(asked)):
        return False
    return all(
        is_list_of(told, 3)
        and told[0] == part[0]
        and is_same(part[1], told[1])
        and (_kind(part[0]) not in _WRITES or is_same(part[2], told[2]))
        for part, told in zip(asked, cast("Sequence[Any]", result), strict=True)
    )
