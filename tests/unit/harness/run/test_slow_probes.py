"""Where a first look takes all the patience there is, what it missed gets a second one."""

from typing import Any

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from splitbrain.contracts.arms import LinkQuality
from splitbrain.contracts.fault import Link
from splitbrain.harness.run.evidence import Observer
from splitbrain.nemesis.effects import Evidence
from splitbrain.nemesis.expectations import LinkDelivers, PeersStall
from tests.unit.harness.run.armed_world import NODES, ArmedWorld, WorldClock, WorldStop

N1, N5 = NODES[0], NODES[-1]


class SlowWorld(ArmedWorld):
    """A machine on which one measurement takes all the patience there is."""

    def measure(self, link: Link, probes: int, timeout_s: float) -> LinkQuality:
        for _ in range(100):
            self.tick()
        return super().measure(link, probes, timeout_s)


class OneLook(WorldStop):
    """Patience is over after the first look."""

    def retrying(self, patience_s: float, interval_s: float, *errors: type[Exception]) -> Retrying:
        return Retrying(
            stop=stop_after_attempt(1), retry=retry_if_exception_type(errors), reraise=True
        )


def looked(expected: list[Any], *cut: Link) -> Evidence:
    """Evidence of one slow look, once these links are cut."""
    world: Any = SlowWorld()
    for _ in range(5):
        world.tick()
    clock: Any = WorldClock(world)
    observer = Observer(world, world.traffic, clock, watch=world.watch)
    before = observer.before(expected)
    world.cut(cut)
    return observer.await_all(expected, clock.now(), 3.0, OneLook(world), baseline=before)


def test_a_stall_that_is_too_fresh_for_a_slow_first_look_is_seen() -> None:
    link = Link(N1, N5)
    seen = looked([PeersStall(N5), LinkDelivers(link, delivers=False)], link, Link(N5, N1))
    assert seen.seen, seen.sentence


def test_what_is_not_so_is_not_seen_by_a_second_look_either() -> None:
    seen = looked([PeersStall(N5), LinkDelivers(Link(N1, N5), delivers=True)])
    assert not seen.seen
    assert seen.sentence == "not seen: n5 takes in nothing from its peers"
