"""The merge of what worker processes tell: order, watermarks, and what a death cuts off."""

from random import Random

import pytest

from splitbrain.harness.run.load.merge import ENDED, Merge


def line(source: int, time: int) -> bytes:
    return f"{source}@{time}".encode()


def add(merge: Merge, source: int, watermark: int, *times: int) -> None:
    merge.add(source, watermark, times, [line(source, time) for time in times])


def test_nothing_is_told_that_something_older_may_still_precede() -> None:
    merge = Merge(2)
    add(merge, 0, 50, 10, 20, 40)
    assert merge.take() == []
    add(merge, 1, 30, 15, 25)
    assert merge.take() == [line(0, 10), line(1, 15), line(0, 20), line(1, 25)]
    add(merge, 1, 45)
    assert merge.take() == [line(0, 40)]


def test_what_is_as_old_as_the_watermark_waits_for_what_may_happen_at_the_same_time() -> None:
    merge = Merge(2)
    add(merge, 0, 20, 20)
    add(merge, 1, 20)
    assert merge.take() == []
    add(merge, 1, 21, 20)
    add(merge, 0, 21)
    assert merge.take() == [line(0, 20), line(1, 20)]


def test_events_of_one_source_keep_their_order_at_equal_times() -> None:
    merge = Merge(2)
    merge.add(0, ENDED, (5, 5, 5), [b"a", b"b", b"c"])
    merge.add(1, ENDED, (5,), [b"d"])
    assert merge.take() == [b"a", b"b", b"c", b"d"]


def test_a_source_that_has_ended_holds_nobody_up() -> None:
    merge = Merge(2)
    add(merge, 0, ENDED, 10)
    add(merge, 1, 1_000, 500)
    assert merge.take() == [line(0, 10), line(1, 500)]


def test_what_is_held_is_counted_until_it_is_told() -> None:
    merge = Merge(2)
    add(merge, 0, 50, 10, 20)
    assert merge.held_bytes(0) == len(line(0, 10)) + len(line(0, 20))
    add(merge, 1, 15)
    assert merge.take() == [line(0, 10)]
    assert merge.held_bytes(0) == len(line(0, 20))
    assert merge.held_bytes(1) == 0


@pytest.mark.parametrize(("watermark", "times"), [(9, ()), (20, (9, 15))])
def test_a_broken_promise_is_a_defect(watermark: int, times: tuple[int, ...]) -> None:
    merge = Merge(1)
    add(merge, 0, 10)
    with pytest.raises(ValueError, match="promised nothing older than 10"):
        add(merge, 0, watermark, *times)


def test_nothing_is_told_that_is_younger_than_a_dead_ones_last_word() -> None:
    merge = Merge(3)
    add(merge, 0, 30, 10, 25)
    add(merge, 1, 50, 20, 35)
    merge.abandon(0)
    assert merge.take() == []
    add(merge, 2, 60, 28, 40)
    assert merge.take() == [line(0, 10), line(1, 20), line(0, 25), line(2, 28)]
    add(merge, 1, ENDED, 70)
    add(merge, 2, ENDED, 80)
    assert merge.take() == []
    assert [merge.held_bytes(source) for source in range(3)] == [0, 0, 0]


def test_when_all_are_abandoned_nothing_is_held() -> None:
    merge = Merge(2)
    add(merge, 0, 30, 10, 25)
    add(merge, 1, 20, 15)
    merge.take()
    merge.abandon(0)
    merge.abandon(1)
    assert [merge.held_bytes(source) for source in range(2)] == [0, 0]
    add(merge, 0, ENDED)
    assert merge.take() == []


def test_the_first_of_two_deaths_in_time_cuts() -> None:
    merge = Merge(2)
    add(merge, 0, 30, 10, 25)
    add(merge, 1, 20, 15)
    merge.abandon(0)
    merge.abandon(1)
    assert merge.take() == [line(0, 10), line(1, 15)]


class Misled(Merge):
    """Takes another watermark for that of every source."""

    def watermark(self) -> int:
        raise NotImplementedError

    def take(self) -> list[bytes]:
        watermarks = [source.watermark for source in self._sources]
        misleading = self.watermark()
        for source in self._sources:
            source.watermark = misleading
        lines = super().take()
        for source, watermark in zip(self._sources, watermarks, strict=True):
            source.watermark = watermark
        return lines


class Hasty(Misled):
    """A mutant: tells whatever has come, whatever may still come."""

    def watermark(self) -> int:
        return ENDED


class HeldBackByOne(Misled):
    """A mutant: goes by the youngest watermark instead of the oldest."""

    def watermark(self) -> int:
        return max(source.watermark for source in self._sources)


class Forgetful(Merge):
    """A mutant: goes on after a death as if that source had ended."""

    def abandon(self, number: int) -> None:
        self._sources[number].watermark = ENDED


def is_faithful(kind: type[Merge], seed: int) -> bool:
    """Whether three sources with random delays, one of which may die, come out as a prefix."""
    random = Random(seed)
    truth: list[list[int]] = [sorted(random.choices(range(200), k=20)) for _ in range(3)]
    merge, told, watermarks = kind(3), [], [0, 0, 0]
    dying = random.choice([None, 0, 1, 2])
    dies_at = random.randrange(200)
    alive = {0, 1, 2}
    while alive:
        source = random.choice(sorted(alive))
        watermark = watermarks[source] + random.randrange(1, 30)
        if source == dying and watermark > dies_at:
            merge.abandon(source)
            alive.discard(source)
        else:
            times = [time for time in truth[source] if watermarks[source] <= time < watermark]
            if watermark > 200:
                alive.discard(source)
                watermark = ENDED
            merge.add(source, watermark, times, [line(source, time) for time in times])
            watermarks[source] = watermark
        told += merge.take()
    cut = watermarks[dying] if dying is not None else ENDED
    wanted = {line(source, time) for source in range(3) for time in truth[source] if time < cut}
    times = [int(text.partition(b"@")[2]) for text in told]
    return times == sorted(times) and set(told) == wanted


def test_every_interleaving_comes_out_in_order_and_as_a_prefix() -> None:
    assert all(is_faithful(Merge, seed) for seed in range(200))


@pytest.mark.parametrize("mutant", [Hasty, HeldBackByOne, Forgetful])
def test_a_merge_that_ignores_watermarks_or_deaths_is_caught(mutant: type[Merge]) -> None:
    assert not all(is_faithful(mutant, seed) for seed in range(200))
