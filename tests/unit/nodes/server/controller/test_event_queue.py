"""The controller's queue, turn by turn."""

from collections.abc import Callable

from splitbrain.nodes.server.controller.leading import EventQueue
from splitbrain.nodes.server.host.measurements import Measurements
from tests.unit.nodes.server import hand_made_world


class Kept(Measurements):
    def __init__(self) -> None:
        self.handled: list[tuple[int, int]] = []

    def event_handled(self, waited_us: int, worked_us: int) -> None:
        self.handled.append((waited_us, worked_us))


class World(hand_made_world.World):
    def __init__(self) -> None:
        super().__init__()
        self.kept = Kept()
        self.done: list[str] = []
        self.queue = EventQueue(self, self.kept, lambda: self.done.append("armed"))

    def event(self, name: str, takes_us: int = 0) -> Callable[[], None]:
        def happen() -> None:
            self.time_us += takes_us
            self.done.append(name)

        return happen


def test_each_event_has_a_turn_of_its_own_in_the_order_in_which_they_came() -> None:
    world = World()
    for name in "abc":
        world.queue.add(world.event(name))
    assert world.done == []
    world.turn()
    assert world.done == ["a", "armed"]
    world.queue.add(world.event("d"))
    for _ in range(3):
        world.turn()
    assert world.done == [*("a", "armed", "b", "armed"), *("c", "armed", "d", "armed")]
    assert not world.turns


def test_what_is_taken_away_is_not_handled_and_later_events_are() -> None:
    world = World()
    world.queue.add(world.event("a"))
    assert len(world.queue.take_all()) == 1
    world.turn()
    assert world.done == []
    world.queue.add(world.event("b"))
    world.turn()
    assert world.done == ["b", "armed"]


def test_waiting_and_working_are_measured_apart() -> None:
    world = World()
    world.queue.add(world.event("a", takes_us=30))
    world.queue.add(world.event("b"))
    world.time_us += 5
    world.turn()
    world.turn()
    assert world.kept.handled == [(5, 30), (35, 0)]


def test_an_event_that_brings_another_asks_for_one_turn() -> None:
    world = World()
    world.queue.add(lambda: world.queue.add(world.event("next")))
    world.turn()
    assert len(world.turns) == 1
    world.turn()
    assert world.done == ["armed", "next", "armed"]
