"""Pairing of invocations with their completions, pure (design, section 4).

Operations that were never completed become ``info``; ``fail`` operations are kept with their type
for callers to decide. Must never guess: every breach of the rules of a history (two open operations
of one process, a completion of nothing, an invocation before the last return, in our own a retired
process at work) is a ``PairingError`` that names the event.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from splitbrain.history.errors import PairingError
from splitbrain.history.records import Event, PairedOperation

#: Invocation without completion so far, and its place among the operations.
_Open = tuple[Event, int]


def pair(events: Iterable[Event], *, foreign: bool = False) -> list[PairedOperation]:
    """Pair events in the order of their index to operations in the order of their invocation.

    In a ``foreign`` history a process may go on after its ``info``, which only leaves that
    operation open; our own recorder retires it, so that one at work shows a broken record.

    Raises:
        PairingError: the events break the rules of a history.
    """
    return _pair(events, _raise, retires=not foreign)


def pair_leniently(events: Iterable[Event]) -> tuple[list[PairedOperation], list[PairingError]]:
    """Pair a foreign history with missing lines as far as possible; return the refusals too.

    An event that breaks the rules is left out. An operation whose process goes on without its
    completion is ``info``: the completion may have stood in a line that is missing.
    """
    refused: list[PairingError] = []
    return _pair(events, refused.append, retires=False), refused


def _raise(error: PairingError) -> None:
    raise error


def _pair(
    events: Iterable[Event], refuse: Callable[[PairingError], None], *, retires: bool
) -> list[PairedOperation]:
    """Pair in one pass; the path of a history without fault is kept short."""
    operations: list[PairedOperation | None] = []
    open_by_process: dict[int, _Open] = {}
    retired: set[int] = set()
    #: Last time of each process.
    last_time: dict[int, int] = {}
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
            current = open_by_process.pop(process, None)
            problem = _why_not_yet(event, current, last_time.get(process, event.time))
            if current is not None:
                operations[current[1]] = _never_completed(current[0])
            if problem is None or current is not None:
                open_by_process[process] = (event, len(operations))
                operations.append(None)
        else:
            current = open_by_process.pop(process, None)
            if current is None:
                problem = f"process {process} completes {event.f} but has invoked nothing"
            else:
                invocation, place = current
                problem = _why_not(invocation, event)
                operations[place] = (
                    _complete(invocation, event)
                    if problem is None
                    else _never_completed(invocation)
                )
                # The end of an info is unknown.
                last_time[process] = invocation.time if event.type == "info" else event.time
                if retires and event.type == "info":
                    retired.add(process)
        last_index = max(last_index, index)
        if problem is not None:
            refuse(PairingError(problem, index))
    for invocation, place in open_by_process.values():
        operations[place] = _never_completed(invocation)
    return [operation for operation in operations if operation is not None]


def events_of(operations: Sequence[PairedOperation]) -> list[Event]:
    """Return events for operations, for formats that hold whole operations.

    In the order of time; where times are equal, an invocation comes before the completions of other
    processes, so that ties stay concurrent, and each process keeps its own order.
    """
    moments: list[tuple[int, int, int, PairedOperation]] = []
    last_end: dict[int, int] = {}
    #: Last operation of a process, where it is open, with its place.
    left_open: dict[int, tuple[int, PairedOperation]] = {}
    for order, operation in enumerate(operations):
        process, start = operation.process, operation.start
        if process in left_open:
            # The process goes on, so its open operation ends first.
            place, before = left_open.pop(process)
            moments.append((start, 3 if before.start == start else 2, place, before))
            last_end[process] = start
        # 0: an invocation; 2: a completion; 3: an invocation at the very end of the one before.
        tied = last_end.get(process) == start
        moments.append((start, 3 if tied else 0, order, operation))
        if operation.end is None:
            left_open[process] = (order, operation)
        else:
            instant = tied and operation.end == start
            moments.append((operation.end, 3 if instant else 2, order, operation))
            last_end[process] = operation.end
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


def _why_not_yet(event: Event, current: _Open | None, last_time: int) -> str | None:
    if current is None and event.time >= last_time:
        return None
    invokes = f"process {event.process} invokes {event.f}"
    if current is not None:
        return f"{invokes} while its {current[0].f} of index {current[0].index} is open"
    return f"{invokes} at {event.time} ns, and its last operation was over at {last_time} ns"


def _why_not(invocation: Event, completion: Event) -> str | None:
    """Say why the second event cannot complete the first; foreign ones may leave the key out."""
    if completion.f != invocation.f or completion.key not in (None, invocation.key):
        return (
            f"process {completion.process} completes {_what(completion)}, but invoked "
            f"{_what(invocation)} at index {invocation.index}"
        )
    if completion.time < invocation.time:
        return f"completed at {completion.time} ns, before its invocation at {invocation.time} ns"
    return None


def _complete(invocation: Event, completion: Event) -> PairedOperation:
    type_ = completion.type
    # By position, for speed: a history has a million of them.
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
        completion.node or invocation.node or None,
        completion.error,
        completion.position,
        invocation.final or completion.final,
    )


def _what(event: Event) -> str:
    return event.f if event.key is None else f"{event.f} of key {event.key}"


def _never_completed(invocation: Event) -> PairedOperation:
    unknown = msgspec.structs.replace(
        invocation, type="info", error="never-completed", position=None
    )
    return _complete(invocation, unknown)
