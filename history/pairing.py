"""Pairs invocations with their completions, pure (design, section 4).

Operations that were never completed become ``info``; ``fail`` operations are kept with their type
so that callers decide what to do with them. Must never guess: whatever breaks the rules of a
history (two open operations of one process, a completion of nothing, a retired process at work)
is a ``PairingError`` that names the event.
"""

from collections.abc import Iterable
from typing import NamedTuple

from history.errors import PairingError
from history.records import Event, PairedOperation


class _Open(NamedTuple):
    """An invocation without completion so far, and its place among the operations."""

    invocation: Event
    place: int


def pair(events: Iterable[Event]) -> list[PairedOperation]:
    """Pair the events of one history, which come in the order of their index.

    Returns:
        Operations in the order of their invocation.

    Raises:
        PairingError: the events break the rules of a history.
    """
    operations: list[PairedOperation | None] = []
    open_by_process: dict[int, _Open] = {}
    retired: set[int] = set()
    last_index = -1
    for event in events:
        if event.index <= last_index:
            raise PairingError(
                f"index {event.index} does not come after index {last_index}", event.index
            )
        last_index = event.index
        process = event.process
        current = open_by_process.get(process)
        if process in retired:
            raise PairingError(
                f"process {process} goes on with {event.type} of {event.f} after info retired it",
                event.index,
            )
        if event.type == "invoke":
            if current is not None:
                raise PairingError(
                    f"process {process} invokes {event.f} while its {current.invocation.f} "
                    f"of index {current.invocation.index} is open",
                    event.index,
                )
            open_by_process[process] = _Open(event, len(operations))
            operations.append(None)
            continue
        if current is None:
            raise PairingError(
                f"process {process} completes {event.f} but has invoked nothing", event.index
            )
        operations[current.place] = _complete(current.invocation, event)
        del open_by_process[process]
        if event.type == "info":
            retired.add(process)
    for current in open_by_process.values():
        operations[current.place] = _never_completed(current.invocation)
    return [operation for operation in operations if operation is not None]


def _complete(invocation: Event, completion: Event) -> PairedOperation:
    """One operation from its two events; foreign completions may leave the key out."""
    if completion.f != invocation.f or completion.key not in (None, invocation.key):
        raise PairingError(
            f"process {completion.process} completes {_what(completion)}, but invoked "
            f"{_what(invocation)} at index {invocation.index}",
            completion.index,
        )
    if completion.time < invocation.time:
        raise PairingError(
            f"completed at {completion.time} ns, before its invocation at {invocation.time} ns",
            completion.index,
        )
    succeeded = completion.type == "ok"
    return PairedOperation(
        index=invocation.index,
        process=invocation.process,
        f=invocation.f,
        key=invocation.key,
        argument=invocation.value,
        result=completion.value if succeeded else None,
        type="ok" if succeeded else "fail" if completion.type == "fail" else "info",
        start=invocation.time,
        end=None if completion.type == "info" else completion.time,
        node=completion.node or invocation.node,
        error=completion.error,
        position=completion.position,
        final=invocation.final or completion.final,
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
