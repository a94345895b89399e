"""Fates of numbered records, by the acknowledged and the found ones. Pure."""

import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Audit:
    """The outcome for the records of a load."""

    acknowledged: int
    found: int
    #: Acknowledged and not found, sorted.
    lost: tuple[int, ...]
    #: Found more than once, sorted.
    repeated: tuple[int, ...]
    #: Found after a later one of the same partition, sorted.
    out_of_order: tuple[int, ...]

    @property
    def is_clean(self) -> bool:
        """Whether the brokers kept all that an idempotent producer is promised."""
        return not (self.lost or self.repeated or self.out_of_order)


def audit(acknowledged: Collection[int], found: Mapping[int, Sequence[int]]) -> Audit:
    """Compare numbers that were acknowledged with those in each partition, by their offsets."""
    times = Counter(number for numbers in found.values() for number in numbers)
    late = {
        later
        for numbers in found.values()
        for earlier, later in itertools.pairwise(numbers)
        if later < earlier
    }
    return Audit(
        acknowledged=len(acknowledged),
        found=times.total(),
        lost=tuple(sorted(set(acknowledged) - set(times))),
        repeated=tuple(sorted(number for number, count in times.items() if count > 1)),
        out_of_order=tuple(sorted(late)),
    )
