"""Queues and a stack: put one element in, take one out; a take that finds nothing answers None.

``None`` is never an element. An open take may have taken an element that is never seen again.
"""

from collections.abc import Collection, Hashable, Iterable
from typing import Any

from splitbrain.checker.models.model import (
    Call,
    ElementKinds,
    KeyedModel,
    NondeterministicModel,
    granted,
    refused,
)
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import shown, wrong_echo


class FifoQueue(KeyedModel):
    """A queue that gives elements out in the order in which they came, and is never full."""

    name = "fifo-queue"
    functions = frozenset({"enqueue", "dequeue"})
    #: The next one to come out stands first.
    initial = ()
    answerless_functions = frozenset({"enqueue"})
    element_kinds = ElementKinds("enqueue", "dequeue", "first")
    put, take = "enqueue", "dequeue"
    #: Greatest number of elements; None for any. See ``BoundedFifoQueue``.
    capacity: int | None = None

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        """Take the element that stands first; refuse one only if full."""
        if call.f == self.take:
            head = state[0] if state else None
            return not call.known or call.result == head, state[1:]
        full = self.capacity is not None and len(state) >= self.capacity
        if refused(call):
            return full, state
        return not (full and call.known), state if full else self.with_element(state, call.argument)

    def with_element(self, state: Any, element: Any) -> tuple[Any, ...]:
        """Return the elements and one that came after them."""
        return (*state, element)

    def problem_with(self, operation: PairedOperation) -> str | None:
        """Reject null as an element, and refusals of a queue that is never full."""
        return _problem(operation, self.name, bounded=self.capacity is not None, put=self.put)

    def is_pure(self, call: Call) -> bool:
        """Hold for a take that found nothing and a put that was refused."""
        if call.f == self.take:
            return call.known and call.result is None
        return refused(call)

    def droppable(
        self, open_calls: Collection[Call], known_calls: Collection[Call]
    ) -> frozenset[Call]:
        """Open puts of what no answer shows, all open takes where no answer needs one.

        An element that no answer shows can go together with the open take that took it, if any:
        what is left was in the same order. It may have filled the object, though, where a put was
        refused. A take makes room for others to come first, to find nothing, or, where there is a
        capacity, to be accepted.
        """
        taken = [call.result for call in known_calls if call.f == self.take]
        puts = [call for call in known_calls if call.f == self.put]
        was_full = any(refused(call) for call in puts)
        made_room = bool(taken) or (self.capacity is not None and bool(puts))

        def useful(call: Call) -> bool:
            return made_room if call.f == self.take else was_full or call.argument in taken

        return frozenset(call for call in open_calls if not useful(call))


class BoundedFifoQueue(FifoQueue):
    """A queue with a capacity: an enqueue answers false where it is full.

    Base for a user's own, which names the ``capacity``.
    """

    name = "bounded-fifo-queue"
    answerless_functions = frozenset()
    element_kinds = None

    def answer_of(self, operation: PairedOperation) -> object:
        """Return whether an enqueue was accepted."""
        return granted(operation.result) if operation.f == "enqueue" else operation.result


class Stack(FifoQueue):
    """A stack: it gives out the element that came last, and is never full."""

    name = "stack"
    functions = frozenset({"push", "pop"})
    answerless_functions = frozenset({"push"})
    element_kinds = ElementKinds("push", "pop", "last")
    put, take = "push", "pop"

    def with_element(self, state: Any, element: Any) -> tuple[Any, ...]:
        """Return the elements below one that came after them."""
        return (element, *state)


class PriorityQueue(FifoQueue):
    """A queue that gives out the least of its elements, which are whole numbers; never full."""

    name = "priority-queue"
    functions = frozenset({"insert", "delete-min"})
    answerless_functions = frozenset({"insert"})
    element_kinds = ElementKinds("insert", "delete-min", "least")
    put, take = "insert", "delete-min"

    def with_element(self, state: Any, element: Any) -> tuple[Any, ...]:
        """Return the elements and one more in order of size."""
        return tuple(sorted((*state, element)))

    def problem_with(self, operation: PairedOperation) -> str | None:
        """Require whole numbers."""
        element: object = operation.argument if operation.f == self.put else operation.result
        is_whole = isinstance(element, int) and not isinstance(element, bool)
        if operation.f == self.put and not is_whole:
            return f"the elements of a priority-queue are whole numbers, and not {shown(element)}"
        if (
            operation.type == "ok"
            and operation.f == self.take
            and not (is_whole or element is None)
        ):
            return f"delete-min answers a whole number or null, and not {shown(element)}"
        return super().problem_with(operation)


class UnorderedQueue(NondeterministicModel, KeyedModel):
    """A queue that gives out any of its elements; a state is a bag: pairs of element and count."""

    name = "unordered-queue"
    functions = frozenset({"enqueue", "dequeue"})
    initial = frozenset({frozenset[Any]()})
    answerless_functions = frozenset({"enqueue"})

    def problem_with(self, operation: PairedOperation) -> str | None:
        """Reject null as an element, and refusals."""
        return _problem(operation, self.name, bounded=False)

    def steps(self, state: Any, call: Call) -> Iterable[Any]:
        """Dequeue any element, if there is one; an open dequeue may have taken each."""
        if call.f == "enqueue":
            return (_changed(state, call.argument, 1),)
        if not call.known:
            return [_changed(state, element, -1) for element, _ in state] or (state,)
        if call.result is None:
            return () if state else (state,)
        present = any(element == call.result for element, _ in state)
        return (_changed(state, call.result, -1),) if present else ()

    def droppable(
        self, open_calls: Collection[Call], known_calls: Collection[Call]
    ) -> frozenset[Call]:
        """Open enqueues of what no answer shows; all open dequeues where none found nothing.

        An element that no answer shows can go together with the open dequeue that took it. An
        open dequeue only ever takes something away, which only emptiness can show.
        """
        taken = {call.result for call in known_calls if call.f == "dequeue"}

        def useful(call: Call) -> bool:
            return (None if call.f == "dequeue" else call.argument) in taken

        return frozenset(call for call in open_calls if not useful(call))


def _changed(bag: frozenset[tuple[Hashable, int]], element: Hashable, by: int) -> Hashable:
    counts = dict(bag)
    counts[element] = counts.get(element, 0) + by
    return frozenset((other, count) for other, count in counts.items() if count)


def _problem(
    operation: PairedOperation, name: str, *, bounded: bool, put: str = "enqueue"
) -> str | None:
    if operation.f != put:
        return None
    if operation.argument is None:
        return "null cannot be an element: it is the answer where there is none"
    is_answer = isinstance(operation.result, bool)
    if bounded and is_answer:
        return None
    if not bounded and operation.result is False and operation.argument is not False:
        return f"{name} is never full and refuses nothing; for a capacity see BoundedFifoQueue"
    return wrong_echo(operation)
