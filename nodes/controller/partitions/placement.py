"""Where the replicas of new partitions go: spread over the racks, brokers taken in turn.

The first replica, which leads, goes to a broker that is not fenced; the others go rack by rack, and
within a rack to brokers that are not fenced as long as there are some. From partition to partition
the first rack and the first broker of each rack move on by one; where all combinations have come
up, the order is drawn anew. Must never place two replicas of a partition on one broker.

Source: a real controller's striped replica placer (KIP-631, KIP-36 for racks).
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from splitbrain.nodes.controller.basis.decisions import Refusal
from splitbrain.nodes.quorum.random_source import RandomSource
from splitbrain.nodes.wire.errors import ApiError


class UsableBroker(NamedTuple):
    """A broker that new replicas may go to."""

    broker_id: int
    #: None where the broker names none; such brokers form a rack of their own.
    rack: str | None
    is_fenced: bool


def place(
    brokers: Iterable[UsableBroker],
    partition_count: int,
    replication_factor: int,
    random: RandomSource,
) -> list[tuple[int, ...]]:
    """Replicas of each partition, the preferred leader first.

    Raises Refusal: INVALID_REPLICATION_FACTOR, there are not brokers enough.
    """
    known = tuple(brokers)
    if replication_factor <= 0:
        raise _refused(
            f"Invalid replication factor {replication_factor}: the replication factor must be "
            "positive."
        )
    if all(broker.is_fenced for broker in known):
        raise _refused(
            "All brokers are currently fenced, or have all their log directories cordoned."
        )
    if replication_factor > len(known):
        raise _refused(
            f"The target replication factor of {replication_factor} cannot be reached because "
            f"only {len(known)} broker(s) are registered or some brokers have all their log "
            "directories cordoned."
        )
    stripes = _Stripes(known, random)
    return [stripes.next(replication_factor) for _ in range(partition_count)]


class _Ring:
    """Brokers of one rack, taken in turn; each round begins one further than the last."""

    def __init__(self, brokers: Iterable[int], random: RandomSource) -> None:
        self._brokers = sorted(brokers)
        self._first = _below(len(self._brokers), random) if self._brokers else 0
        self._taken = 0
        self._round = 0

    def next(self, current: int) -> int | None:
        """Return the next broker of this round; None once all have come up in it."""
        if not self._brokers:
            return None
        if self._round != current:
            self._round = current
            self._taken = 0
            self._first = (self._first + 1) % len(self._brokers)
        if self._taken == len(self._brokers):
            return None
        broker = self._brokers[(self._first + self._taken) % len(self._brokers)]
        self._taken += 1
        return broker

    def shuffle(self, random: RandomSource) -> None:
        _shuffle(self._brokers, random)


class _Rack:
    """Brokers in one place."""

    def __init__(self, brokers: Sequence[UsableBroker], random: RandomSource) -> None:
        self._fenced = _Ring((each.broker_id for each in brokers if each.is_fenced), random)
        self.unfenced = _Ring((each.broker_id for each in brokers if not each.is_fenced), random)

    def next(self, current: int) -> int | None:
        """Return the next broker of this round, fenced ones last."""
        broker = self.unfenced.next(current)
        return self._fenced.next(current) if broker is None else broker

    def shuffle(self, random: RandomSource) -> None:
        self._fenced.shuffle(random)
        self.unfenced.shuffle(random)


class _Stripes:
    """All racks, taken in turn."""

    def __init__(self, brokers: Sequence[UsableBroker], random: RandomSource) -> None:
        # Brokers without a rack first.
        names = sorted(
            {broker.rack for broker in brokers}, key=lambda rack: (rack is not None, rack or "")
        )
        self._racks = [
            _Rack([broker for broker in brokers if broker.rack == name], random) for name in names
        ]
        self._unfenced_count = sum(not broker.is_fenced for broker in brokers)
        self._random = random
        self._first = _below(len(self._racks), random)
        self._round = 0

    def next(self, replication_factor: int) -> tuple[int, ...]:
        """Replicas of the next partition; there must be as many brokers."""
        if self._round == self._unfenced_count > 1:
            self._shuffle()
            self._round = 0
        at = self._first % len(self._racks)
        self._first = at + 1
        leader_at, leader = self._leader(at)
        replicas = [leader]
        has_passed_leader = False
        while len(replicas) < replication_factor:
            # The leader's rack has had its turn already, once.
            if at == leader_at and not has_passed_leader:
                has_passed_leader = True
            else:
                broker = self._racks[at].next(self._round)
                if broker is not None:
                    replicas.append(broker)
            at = (at + 1) % len(self._racks)
        self._round += 1
        return tuple(replicas)

    def _leader(self, at: int) -> tuple[int, int]:
        while True:
            leader = self._racks[at].unfenced.next(self._round)
            if leader is not None:
                return at, leader
            at = (at + 1) % len(self._racks)

    def _shuffle(self) -> None:
        _shuffle(self._racks, self._random)
        for rack in self._racks:
            rack.shuffle(self._random)


def _refused(problem: str) -> Refusal:
    return Refusal(ApiError.INVALID_REPLICATION_FACTOR, problem)


def _below(count: int, random: RandomSource) -> int:
    return int(random.random() * count)


def _shuffle(items: list[Any], random: RandomSource) -> None:
    for last in range(len(items) - 1, 0, -1):
        other = _below(last + 1, random)
        items[last], items[other] = items[other], items[last]
