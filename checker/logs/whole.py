"""Logs as final reads showed them from their beginning to their end; pure."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from splitbrain.checker.logs.parts import Polled, parts_of
from splitbrain.checker.transactions.micro_operations import hashable
from splitbrain.contracts.log import POLL
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import shown


class Whole(NamedTuple):
    """A log as a final read showed it from its beginning."""

    read: PairedOperation
    #: By offset.
    records: Mapping[int, Any]
    #: One past the last offset that was looked at.
    end: int


def whole_logs(operations: Iterable[PairedOperation]) -> dict[str, Whole]:
    """Return of each log the final read from its beginning that came furthest, to its end."""
    found: dict[str, Whole] = {}
    for operation in operations:
        if operation.f != POLL or not operation.final or operation.type != "ok":
            continue
        for part in parts_of(operation):
            if not isinstance(part, Polled) or part.start != 0 or part.out_of_reach is not None:
                continue
            if part.position is None:
                continue
            known = found.get(part.key)
            if known is None or part.position > known.end:
                found[part.key] = Whole(operation, dict(part.records), part.position)
    return found


def value_at(whole: Whole, offset: int) -> Hashable:
    """Return the value at an offset; where there is none, something that is equal to no value."""
    return hashable(whole.records[offset]) if offset in whole.records else _NOTHING


def shown_at(whole: Whole, offset: int) -> str:
    """Return the value at an offset in words."""
    return shown(whole.records[offset]) if offset in whole.records else "nothing"


class _Nothing:
    """Equal to no value."""


_NOTHING: Final = _Nothing()
