"""Pairs invocations with their completions, pure (design, section 4).

Operations that were never completed become ``info``; ``fail`` operations are kept with their type
so that callers decide what to do with them. Must never guess: whatever breaks the rules of a
history (two open operations of one process, a completion of nothing, a retired process at work)
is a ``PairingError`` that names the event.
"""

from collections.abc import Callable, Iterable, Sequence

from history.errors import PairingError
from history.records import Event, PairedOperation

#: An invocation without completion so far, and its place among the operations.
_Open = tuple[Event, int]


def pair(events: Iterable[Event]) -> list[PairedOperation]:
    """Pair the events of one history, which come in the order of their index.

    Returns:
        Operations in the order of their invocation.

    Raises:
        PairingError: the events break the rules of a history.
    """
    return _pair(events, _raise)


def pair_leniently(
    events: Iterable[Event],
) -> tuple[list[PairedOperation], list[PairingError]]:
    """Pair what can be paired where lines are missing, and say what could not.

    An event that breaks the rules is left out. An operation whose process goes on without its
    completion is ``info``: the completion may have stood in a line that is missing.
    """
    refused: list[PairingError] = []
    return _pair(events, refused.append), refused


def _raise(error: PairingError) -> None:
    raise error


def _pair(events: Iterable[Event], refuse: Callable[[PairingError], None]) -> list[PairedOperation]:
    """The one pass over the events; the way of a history without fault is kept short."""
    operations: list[PairedOperation | None] = []
    open_by_process: dict[int, _Open] = {}
    retired: set[int] = set()
    last_index = -1
    for event in events:
        index, process = event.index, event.process
        problem: str | None = None
        if index <= last_index:
            problem = f"index {index} does not come after index {last_index}"
        elif process in retired:
            problem = (
                f"process {process} goes on with {event.type} of {event.f} after info retired it"
            )
        elif event.type == "invoke":
            current = open_by_process.get(process)
            if current is not None:
                problem = (
                    f"process {process} invokes {event.f} while its {current[0].f} "
                    f"of index {current[0].index} is open"
                )
                operations[current[1]] = _never_completed(current[0])
            open_by_process[process] = (event, len(operations))
            operations.append(None)
        else:
            current = open_by_process.pop(process, None)
            if current is None:
                problem = f"process {process} completes {event.f} but has invoked nothing"
            else:
                invocation, place = current
                problem = _why_not(invocation, event)
                if problem is None:
                    operations[place] = _complete(invocation, event)
                else:
                    operations[place] = _never_completed(invocation)
                if event.type == "info":
                    retired.add(process)
        last_index = max(last_index, index)
        if problem is not None:
            refuse(PairingError(problem, index))
    for invocation, place in open_by_process.values():
        operations[place] = _never_completed(invocation)
    return [operation for operation in operations if operation is not None]


def events_of(operations: Sequence[PairedOperation]) -> list[Event]:
    """The events that operations would have been, for formats that hold whole operations.

    In the order of time; where times are equal, an invocation comes before the completions of
    other processes, so that ties stay concurrent, and each process keeps its own order.
    """
    moments: list[tuple[int, int, int, PairedOperation]] = []
    last_end: dict[int, int] = {}
    for order, operation in enumerate(operations):
        # 0: an invocation; 2: a completion; 3: an invocation at the very end of the one before.
        tied = last_end.get(operation.process) == operation.start
        moments.append((operation.start, 3 if tied else 0, order, operation))
        if operation.end is not None:
            instant = tied and operation.end == operation.start
            moments.append((operation.end, 3 if instant else 2, order, operation))
            last_end[operation.process] = operation.end
    moments.sort(key=lambda moment: moment[:3])
    begun: set[int] = set()
    events: list[Event] = []
    for index, (time, _, order, operation) in enumerate(moments):
        is_completion = order in begun
        begun.add(order)
        events.append(
            Event(
                index=index,
                time=time,
                process=operation.process,
                type=operation.type if is_completion else "invoke",
                f=operation.f,
                key=operation.key,
                value=_value_of(operation, is_completion=is_completion),
                node=operation.node,
                error=operation.error if is_completion else None,
                position=operation.position if is_completion else None,
                final=operation.final,
            )
        )
    return events


def _value_of(operation: PairedOperation, *, is_completion: bool) -> object:
    return operation.result if is_completion and operation.type == "ok" else operation.argument


def _why_not(invocation: Event, completion: Event) -> str | None:
    """Why the second event cannot complete the first; foreign ones may leave the key out."""
    if completion.f != invocation.f or completion.key not in (None, invocation.key):
        return (
            f"process {completion.process} completes {_what(completion)}, but invoked "
            f"{_what(invocation)} at index {invocation.index}"
        )
    if completion.time < invocation.time:
        return f"completed at {completion.time} ns, before its invocation at {invocation.time} ns"
    return None


def _complete(invocation: Event, completion: Event) -> PairedOperation:
    """One operation from its two events, which fit each other."""
    type_ = completion.type
    # By position: a history has a million of them.
    return PairedOperation(
        invocation.index,
        invocation.process,
        invocation.f,
        invocation.key,
        invocation.value,
        completion.value if type_ == "ok" else None,
        "ok" if type_ == "ok" else "fail" if type_ == "fail" else "info",
        invocation.time,
        None if type_ == "info" else completion.time,
        completion.node or invocation.node,
        completion.error,
        completion.position,
        invocation.final or completion.final,
    )


def _what(event: Event) -> str:
    return event.f if event.key is None else f"{event.f} of key {event.key}"


def _never_completed(invocation: Event) -> PairedOperation:
    """The harness died, or stopped, before an answer came."""
    return PairedOperation(
        index=invocation.index,
        process=invocation.process,
        f=invocation.f,
        key=invocation.key,
        argument=invocation.value,
        result=None,
        type="info",
        start=invocation.time,
        end=None,
        node=invocation.node,
        error="never-completed",
        final=invocation.final,
    )
