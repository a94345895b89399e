"""Operations that have ended, as the traffic counts them, and a recorder that keeps them."""

from typing import Any

from splitbrain.contracts.operations import Outcome
from splitbrain.history.records import Event


def ended(outcome: Outcome, node: str | None) -> Event:
    """The event that ends an operation; who answered."""
    return Event(index=1, time=0, process=0, type=outcome, f="write", node=node)


class Recorded:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def append(self, process: int, type_: Any, f: str, **fields: Any) -> Event:
        event = Event(len(self.events), len(self.events), process, type_, f, **fields)
        self.events.append(event)
        return event
