"""Memberships, deliveries, commits and reads of committed offsets of one group; pure.

An answer of ``consume`` is ``{member, generation, logs, began, records, positions}``, see
``contracts.groups``; ``epoch`` in place of ``generation`` is a number that members have of their
own (KIP-848). A ``commit`` is of the positions that the last ``consume`` of its process told: so
much is known of one without an answer, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from splitbrain.checker.models.model import is_list_of
from splitbrain.contracts.groups import (
    ASSIGNED,
    BEGAN,
    COMMIT,
    CONSUME,
    EPOCH,
    FETCH_OFFSETS,
    GENERATION,
    LEAVE,
    MEMBER,
    OFFSETS,
    POSITIONS,
    RECORDS,
)
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import shown

#: Functions of members, and of whoever asks about their group.
OF_GROUPS: Final = (CONSUME, COMMIT, LEAVE, FETCH_OFFSETS)
_MAPS: Final = {CONSUME: (BEGAN, RECORDS, POSITIONS), COMMIT: (OFFSETS,)}
_PAIR: Final = 2


class Standing(NamedTuple):
    """Place of a member in its group, as the coordinator told it."""

    member: str
    #: Of its generation, or of its own epoch.
    number: int
    #: Whether all members have the number at the same time.
    is_generation: bool

    @property
    def words(self) -> str:
        """The number for people."""
        return f"{GENERATION if self.is_generation else EPOCH} {self.number}"


class Consumed(NamedTuple):
    """One answer to a member that reads."""

    operation: PairedOperation
    standing: Standing
    logs: tuple[str, ...]
    #: Committed offset of each log that is new to it; None: none.
    began: Mapping[str, int | None]
    #: Offset and value.
    records: Mapping[str, Sequence[tuple[int, Any]]]
    positions: Mapping[str, int]


class Committed(NamedTuple):
    """A commit that was acknowledged, or may have happened."""

    operation: PairedOperation
    standing: Standing
    offsets: Mapping[str, int]

    @property
    def is_sure(self) -> bool:
        """Whether it was acknowledged."""
        return self.operation.type == "ok"


class OffsetRead(NamedTuple):
    """A committed offset as it was told."""

    operation: PairedOperation
    log: str
    #: None: there is none.
    offset: int | None
    #: Of the member that asked, if it was one.
    standing: Standing | None


class Group(NamedTuple):
    """All that a history tells of a group."""

    consumed: list[Consumed]
    commits: list[Committed]
    reads: list[OffsetRead]


def group_of(operations: Sequence[PairedOperation]) -> Group:
    """Return what a group's operations tell; in order of invocation, without those that failed."""
    group = Group([], [], [])
    #: By process.
    latest: dict[int, Consumed] = {}
    for operation in operations:
        is_ok = operation.type == "ok"
        if operation.f == CONSUME and is_ok:
            found = _consumed(operation)
            latest[operation.process] = found
            group.consumed.append(found)
            group.reads.extend(
                OffsetRead(operation, log, offset, found.standing)
                for log, offset in found.began.items()
            )
        elif operation.f == FETCH_OFFSETS and is_ok:
            group.reads.extend(
                OffsetRead(operation, log, offset, None) for log, offset in operation.result.items()
            )
        elif operation.f == COMMIT and is_ok:
            answer = operation.result
            group.commits.append(Committed(operation, _standing(answer), answer[OFFSETS]))
        elif operation.f == COMMIT and operation.type == "info":
            before = latest.get(operation.process)
            if before is not None:
                group.commits.append(Committed(operation, before.standing, before.positions))
    return group


def _consumed(operation: PairedOperation) -> Consumed:
    answer: dict[str, Any] = operation.result
    records = {
        log: [(offset, value) for offset, value in read] for log, read in answer[RECORDS].items()
    }
    logs, standing = tuple(answer[ASSIGNED]), _standing(answer)
    return Consumed(operation, standing, logs, answer[BEGAN], records, answer[POSITIONS])


def _standing(answer: Mapping[str, Any]) -> Standing:
    is_generation = GENERATION in answer
    return Standing(answer[MEMBER], answer[GENERATION if is_generation else EPOCH], is_generation)


def problem_with(operation: PairedOperation) -> str | None:
    """Return why an operation makes no sense in a group, a clause; None where it does."""
    if operation.f not in OF_GROUPS or operation.type != "ok" or operation.f == LEAVE:
        return None
    answer: Any = operation.result
    if operation.f == FETCH_OFFSETS:
        is_told = _are_offsets(answer, or_null=True)
        return None if is_told else f"it answers offsets by log, and not {shown(answer)}"
    told = shown(answer)
    wrong = f"the answer of a {operation.f} tells member, generation or epoch, and offsets: "
    if not isinstance(answer, Mapping):
        return f"{wrong}{told} does not"
    fields = cast("Mapping[str, Any]", answer)
    numbers = [name for name in (GENERATION, EPOCH) if _is_whole(fields.get(name))]
    lacks = [name for name in _MAPS[operation.f] if not isinstance(fields.get(name), Mapping)]
    if not isinstance(fields.get(MEMBER), str) or len(numbers) != 1 or lacks:
        return f"{wrong}{told} does not"
    return next(_wrong_fields(operation.f, fields), None)


def _wrong_fields(f: str, fields: Mapping[str, Any]) -> Iterator[str]:
    if f == COMMIT:
        if not _are_offsets(fields[OFFSETS]):
            yield f"{shown(fields[OFFSETS])} are no offsets by log"
        return
    if not isinstance(fields.get(ASSIGNED), (list, tuple)):
        yield f"the logs of a member are a list, and not {shown(fields.get(ASSIGNED))}"
    if not _are_offsets(fields[POSITIONS]) or not _are_offsets(fields[BEGAN], or_null=True):
        yield f"{shown(fields)} has no offsets by log for where it began and is"
    for read in cast("Mapping[str, Any]", fields[RECORDS]).values():
        if not _are_records(read):
            yield f"records are lists of [offset, value], and not {shown(read)}"


def _are_records(value: Any) -> bool:
    if not isinstance(value, (list, tuple)):
        return False
    records = cast("Sequence[Any]", value)
    return all(is_list_of(each, _PAIR) and _is_whole(each[0]) for each in records)


def _are_offsets(value: Any, *, or_null: bool = False) -> bool:
    if not isinstance(value, Mapping):
        return False
    offsets = cast("Mapping[Any, Any]", value).values()
    return all(_is_whole(offset) or (or_null and offset is None) for offset in offsets)


def _is_whole(value: Any) -> bool:
    return type(value) is int and value >= 0
