"""Form of a model: an initial state and one step, and properties that a search may use.

A model knows *calls*: operations without process and time. The search asks ``step`` once for each
state and distinct call and remembers the answer, so a model in plain Python is fast enough. A model
must be deterministic, must not change its arguments, and keeps its states hashable.

Sources: Herlihy and Wing 1990 (sequential specification); Porcupine's models (partition hook).
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

import msgspec

from splitbrain.history.edn_values import Number, edn_text
from splitbrain.history.identity import is_edn, key_text, stand_in
from splitbrain.history.records import PairedOperation

#: Longest text of a value that is shown whole.
TEXT_LENGTH_MAX = 60


class Call(msgspec.Struct, frozen=True):
    """Request and, where known, its answer; hashable."""

    f: str
    #: With lists as tuples.
    argument: Any
    #: With lists as tuples; None for an open operation.
    result: Any
    #: False for an open operation (``info``).
    known: bool
    #: Object of the call, where objects of several keys are judged as one part; else None.
    key: str | None = None


Order: TypeAlias = Literal["first", "last", "least"]


class ElementKinds(NamedTuple):
    """Kinds of operations on an object that holds elements, and which of them it gives out."""

    put: str
    #: Answers an element, or None where there is none.
    take: str
    #: The one that came first or last, or the least.
    order: Order


#: No single state.
ANY: Final = object()


class Moves(NamedTuple):
    """States of an object at one call.

    They tell all of it: a call without ``needs`` or ``bars`` is allowed everywhere, and one without
    ``acts`` leads wherever it is allowed to what it ``leaves``.
    """

    #: The only state that allows the call; ``ANY`` if several do.
    needs: Hashable = ANY
    #: The only state that it leads to from others; ``ANY`` if it leads to none.
    leaves: Hashable = ANY
    #: The only one of the states that allow it in which it does so; ``ANY`` if it does in all of
    #: them. An answered call has one only if it is what it needs.
    acts: Hashable = ANY
    #: The only state that does not allow it; ``ANY`` if none or several do not.
    bars: Hashable = ANY


class Model:
    """Base of all models; a user's own overrides ``name``, ``functions``, ``initial``, ``step``.

    Everything else has a safe default: one part, nothing pure, open calls never dropped unless
    they are pure. A model of one object per key is a ``KeyedModel``.
    """

    #: Name in ``splitbrain check --model NAME``.
    name: str = ""
    #: Operation kinds that the model knows.
    functions: frozenset[str] = frozenset()
    #: Kinds that promise less than the others: left out, and judged by another checker.
    unjudged_functions: frozenset[str] = frozenset()
    initial: Hashable = None
    #: Kinds that change no state, whatever they answer.
    pure_functions: frozenset[str] = frozenset()
    #: Kinds whose answer says no more than "done"; open and completed calls are then alike.
    answerless_functions: frozenset[str] = frozenset()
    #: Kinds that may happen in every state and leave one that depends on the call alone.
    overwriting_functions: frozenset[str] = frozenset()
    #: Kinds that read and write one register which begins with ``initial``, if any; a history of
    #: these two alone is judged without a search if every value is written once.
    register_functions: tuple[str, str] | None = None
    #: How elements come and go, of an object that holds them: it begins empty and is never full. If
    #: every element is put in once, no search is needed.
    element_kinds: ElementKinds | None = None
    #: Whether finitely many distinct calls, however often repeated, lead to finitely many states:
    #: then violations among many open calls are refuted without counting.
    bounded_states: bool = False

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        """Return whether the call and its answer may happen in this state, and the state after it.

        An open call (``known`` false) may happen with any answer; return the state that it leads
        to. Where several answers are possible in one state they must lead to one state.
        """
        raise NotImplementedError

    def partition(self, operation: PairedOperation) -> str | None:
        """Return the operation's part; parts are judged apart. Here all are one part.

        A model that declares more must be sure that operations of different parts can never affect
        each other. Where a part is not one key, calls carry the key of their operation.
        """
        del operation
        return None

    def answer_of(self, operation: PairedOperation) -> object:
        """Return the part of an ``ok`` operation's result that matters to the model; here all.

        Equivalent answers should be equal: equal calls are searched as one.
        """
        return operation.result

    def problem_with(self, operation: PairedOperation) -> str | None:
        """Return why the operation makes no sense to the model, as a clause; None if it does."""
        del operation
        return None

    def is_pure(self, call: Call) -> bool:
        """Return whether the call leaves every state in which it may happen as it was.

        A pure call is taken as soon as it may happen: doing so never hides a valid order.
        """
        return call.f in self.pure_functions

    def is_overwrite(self, call: Call) -> bool:
        """Return whether the call may happen in every state and alone decides the state after it.

        An overwrite can stand unseen right before another one, so that a search need not decide
        where it stood unless its value is needed.
        """
        return call.f in self.overwriting_functions

    def describe(self, call: Call) -> str:
        """Return the call and its answer in a few words, for people."""
        words = [call.f]
        if call.argument is not None:
            words.append(text_of(call.argument))
        if not call.known:
            words.append("(no answer)")
        elif call.f not in self.answerless_functions:
            words.append(f"-> {text_of(call.result)}")
        if call.key is not None:
            words.append(f"(key {call.key})")
        return " ".join(words)

    def alike(self, call: Call) -> Hashable:
        """Return what is equal for calls that do the same in every state; here the call."""
        return call

    def moves(self, call: Call) -> Moves | None:
        """Return what a call needs and leaves in any state; None where it takes all states to say.

        A search that knows it from all calls leaves a state that is still needed only if another
        call leads back in time, which is found out without this where states are few; and it uses
        an operation without answer only where something else needs the state that it leaves.
        """
        del call
        return None

    def folding(self, calls: Collection[Call]) -> Callable[[Any], Hashable] | None:
        """Return what gives one state for all those that none of these calls tells apart.

        None where each state is itself. Sound only if whatever calls follow, all answers that fit
        one of the states fit each of them. A search then meets fewer states.
        """
        del calls
        return None

    def droppable(
        self, open_calls: Collection[Call], known_calls: Collection[Call]
    ) -> frozenset[Call]:
        """Those open calls of a part that can be taken to never have happened.

        Sound only if no known answer can have been enabled by the call, also not through another
        open call. Refusals and reads of absence are answers too. All calls are distinct.
        """
        del known_calls
        return frozenset(call for call in open_calls if self.is_pure(call))


class KeyedModel(Model):
    """Model of one object of which a history holds one per key; keys are judged apart."""

    def partition(self, operation: PairedOperation) -> str | None:
        """Return the key: operations on one object never affect another."""
        return operation.key


class NondeterministicModel(Model):
    """Model in which a call may lead to several states; override ``steps``, not ``step``.

    A state of the search is the set of states that the object may be in, so ``initial`` is a
    frozenset of states as well. An answer that rules some of them out is no pure call.

    Source: Porcupine's ``NondeterministicModel`` (the same construction of a power set).
    """

    def steps(self, state: Any, call: Call) -> Iterable[Any]:
        """Return the states that the call may lead to; none where it may not happen."""
        raise NotImplementedError

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        """Return every state that the call leads to from any of the possible ones."""
        following = frozenset(after for before in state for after in self.steps(before, call))
        return bool(following), following or state


def call_of(operation: PairedOperation, model: Model) -> Call:
    """Return the call of one operation, ``ok`` or ``info``."""
    key = None if model.partition(operation) == operation.key else operation.key
    if operation.f in model.answerless_functions:
        return Call(operation.f, freeze(operation.argument), None, known=True, key=key)
    return Call(
        f=operation.f,
        argument=freeze(operation.argument),
        result=freeze(model.answer_of(operation)) if operation.type == "ok" else None,
        known=operation.type == "ok",
        key=key,
    )


def is_list_of(value: object, length: int) -> bool:
    """Return whether a JSON value is a list of so many items."""
    return isinstance(value, (list, tuple)) and len(cast("Sequence[object]", value)) == length


def granted(result: object) -> bool:
    """Return whether a result is a success: not false, nor ``[..., ..., false]``."""
    if isinstance(result, (list, tuple)):
        parts = cast("Sequence[object]", result)
        return len(parts) != 3 or parts[2] is not False
    return result is not False


def refused(call: Call) -> bool:
    """Return whether a call of a kind that answers true or false was answered with false.

    A refusal is an observation: the state did not allow the call.
    """
    return call.known and call.result is False


def apart_from_truths(state: Hashable, calls: Iterable[Call]) -> Hashable:
    """Return a model's own state, told apart from true and false where calls hold such.

    Values of histories are told apart already; ``initial = 0`` of a user's own model is not, and a
    read that answers false would match it.
    """
    if type(state) is int and any(
        type(c.argument) is bool or type(c.result) is bool for c in calls
    ):
        return Number("number", state)
    return state


class FrozenMap(tuple[Any, ...]):
    """Map as pairs of key and value, sorted by key; no list is equal to it."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenMap) and frozenset(self) == frozenset(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((FrozenMap, frozenset(self)))


def freeze(value: object) -> Hashable:
    """Return a hashable copy: lists become tuples, sets frozensets, maps ``FrozenMap``."""
    if value is None or isinstance(value, (int, str)):
        return value
    if isinstance(value, FrozenMap):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item) for item in cast("list[object]", value))
    if isinstance(value, AbstractSet):
        return frozenset(freeze(item) for item in cast("AbstractSet[object]", value))
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        pairs = ((freeze(key), freeze(item)) for key, item in items)
        return FrozenMap(sorted(pairs, key=lambda pair: repr(pair[0])))
    return cast("Hashable", value)


def plain(value: object) -> Any:
    """Return a JSON-ready copy of a frozen value or a state: tuples and sets become lists."""
    if isinstance(value, FrozenMap):
        return {key_text(key) or edn_text(key): plain(item) for key, item in value}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in cast("tuple[object, ...]", value)]
    if isinstance(value, frozenset):
        items = [plain(item) for item in cast("frozenset[object]", value)]
        return sorted(items, key=repr)
    return stand_in(value) if is_edn(value) else value


def text_of(value: object) -> str:
    """Return a value in at most ``TEXT_LENGTH_MAX`` characters, the middle left out."""
    text = "nothing" if value is None else str(plain(value)) or '""'
    if len(text) <= TEXT_LENGTH_MAX:
        return text
    kept = TEXT_LENGTH_MAX // 2 - 2
    return f"{text[:kept]}...{text[-kept:]}"
