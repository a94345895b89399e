"""Whether the sessions on one register agree with the positions that the system returned; n log n.

Where every acknowledged change has a position (epoch and offset, revision), the order of the
versions is known, also where values repeat. A read that has a position itself is held to it. One
that has none may have seen any change that left its value: it goes back only if all of them lie
before what its process had read, or had written and was told of.

A change without answer and without position may stand anywhere, so a read of its value accuses
nobody. Whether the positions are true is not asked here: ``lost-commits`` looks into the logs.
Source: Terry et al. 1994; issue 7, item 9.
"""

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from splitbrain.checker.findings import Findings, of_key
from splitbrain.checker.models.model import freeze, text_of
from splitbrain.checker.session_kinds import MONOTONIC_READS, NOTHING, READ_YOUR_WRITES, written_by
from splitbrain.history.records import PairedOperation

#: Epoch and offset; a revision has the epoch that its reader gave it.
Position = tuple[int, int]

#: Where the value is that stands before any change.
_BEGINNING: Final[Position] = (-1, -1)


class _Known(NamedTuple):
    """What a process must not go back behind."""

    position: Position
    by: PairedOperation
    guarantee: str


class _Changes(NamedTuple):
    """Which positions left which value."""

    positions: dict[Hashable, list[Position]]
    #: Values that may have been left anywhere.
    anywhere: set[Hashable]


def has_positions(members: Sequence[PairedOperation]) -> bool:
    """Whether every acknowledged change of the register has a position, and there is one."""
    changes = [o for o in members if o.type == "ok" and written_by(o) is not NOTHING]
    return bool(changes) and all(change.position is not None for change in changes)


def judge_positions(members: Sequence[PairedOperation], findings: Findings) -> None:
    """Judge a register that ``has_positions``.

    Args:
        members: ``read``, ``write`` and ``cas`` of one key in the order of their index, not failed.
        findings: where violations go.
    """
    changes = _changes(members)
    known: dict[int, _Known] = {}
    for operation in members:
        findings.poll()
        if operation.type != "ok":
            continue
        before = known.get(operation.process)
        if operation.f == "read":
            position = operation.position or _seen(operation, before, changes)
            guarantee = MONOTONIC_READS
        else:
            changed = written_by(operation) is not NOTHING
            position, guarantee = operation.position if changed else None, READ_YOUR_WRITES
        if position is None:
            continue
        if before is None or position >= before.position:
            known[operation.process] = _Known(position, operation, guarantee)
        elif operation.f == "read":
            _note(before, operation, position, findings)
            # Told once; from here on the process is held to what it read now.
            known[operation.process] = _Known(position, operation, guarantee)


def _changes(members: Sequence[PairedOperation]) -> _Changes:
    positions: dict[Hashable, list[Position]] = {None: [_BEGINNING]}
    anywhere: set[Hashable] = set()
    for operation in members:
        value = written_by(operation)
        if value is NOTHING:
            continue
        if operation.position is None:
            anywhere.add(value)
        else:
            positions.setdefault(value, []).append(operation.position)
    for found in positions.values():
        found.sort()
    return _Changes(positions, anywhere)


def _seen(read: PairedOperation, before: _Known | None, changes: _Changes) -> Position | None:
    """The first change that it can have seen without going back, else the last one at all.

    None where it may have seen one whose position is not known, or that nobody wrote.
    """
    value = freeze(read.result)
    candidates = changes.positions.get(value, [])
    if value in changes.anywhere or not candidates:
        return None
    first = 0 if before is None else bisect_left(candidates, before.position)
    return candidates[min(first, len(candidates) - 1)]


def _note(before: _Known, read: PairedOperation, position: Position, findings: Findings) -> None:
    first = before.by
    verb = "read" if first.f == "read" else "wrote"
    value = first.result if first.f == "read" else written_by(first)
    place = "as at the beginning" if position == _BEGINNING else f"of position {list(position)}"
    findings.note(
        before.guarantee,
        [first, read],
        lambda: (
            f"Process {read.process} {verb} {text_of(value)}{of_key(read.key)} of position "
            f"{list(before.position)} (index {first.index}) and later read {text_of(read.result)} "
            f"{place} (index {read.index})."
        ),
    )
