"""Operations that have ended, as the traffic counts them."""

from contracts.operations import Outcome
from history.records import Event


def ended(outcome: Outcome, node: str | None) -> Event:
    """The event that ends an operation; who answered."""
    return Event(index=1, time=0, process=0, type=outcome, f="write", node=node)
