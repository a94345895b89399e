"""What the nemesis driver keeps of a fault that was injected and is not healed yet."""

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from contracts.fault import ActualFault, Fault
from harness.acting import Record
from harness.evidence import Baseline
from nemesis.courses import Course
from nemesis.fault_kind import FaultKind

#: Of many strokes so many are told one by one.
_TOLD_MAX: Final = 10


class RecordWriter(Protocol):
    """Appends records to a file."""

    def append(self, record: object) -> None:
        """Write one record."""
        ...


class InForce(msgspec.Struct):
    """A fault that was injected and is not healed yet."""

    kind: FaultKind
    fault: Fault
    actual: ActualFault
    course: Course
    baseline: Baseline
    records: list[Record] = []
    #: What the runtime said of the acts, in words.
    said: list[str] = []


def in_short(told: Sequence[str]) -> list[str]:
    """What was seen of the later steps: of many the first and the last ones, and the count."""
    if len(told) <= _TOLD_MAX:
        return list(told)
    half = _TOLD_MAX // 2
    left_out = len(told) - 2 * half
    return [*told[:half], f"{left_out} more steps seen", *told[-half:]]
