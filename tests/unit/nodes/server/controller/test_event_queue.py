"""The controller's queue, turn by turn."""

from collections.abc import Callable

from splitbrain.nodes.quorum.identifiers import Microseconds
from splitbrain.nodes.server.controller.leading import EventQueue
from splitbrain.nodes.server.host.measurements import NothingMeasured


class Turns:
    """A node's turns and clock, gone through by hand."""

    def __init__(self) -> None:
        self.time = 0
        self.due: list[Callable[[], None]] = []

    def now(self) -> Microseconds:
        return Microseconds(self.time)

    def call_soon(self, action: Callable[[], None]) -> None:
        self.due.append(action)

    def wall_clock_ms(self) -> int:
        raise AssertionError("the queue knows no wall clock")

    def call_later(self, delay_us: int, action: Callable[[], None]) -> "Turns":
        raise AssertionError("the queue waits for no time")

    def cancel(self) -> None:
        raise AssertionError("a turn is not called off")

    def turn(self) -> None:
        due, self.due = self.due, []
        for action in due:
            action()


class Kept(NothingMeasured):
    def __init__(self) -> None:
        self.handled: list[tuple[int, int]] = []

    def event_handled(self, waited_us: int, worked_us: int) -> None:
        self.handled.append((waited_us, worked_us))


class World:
    def __init__(self) -> None:
        self.turns, self.kept = Turns(), Kept()
        self.told: list[str] = []
        self.queue = EventQueue(self.turns, self.kept, lambda: self.told.append("armed"))

    def event(self, name: str, takes_us: int = 0) -> Callable[[], None]:
        def happen() -> None:
            self.turns.time += takes_us
            self.told.append(name)

        return happen


def test_each_event_has_a_turn_of_its_own_in_the_order_in_which_they_came() -> None:
    world = World()
    for name in "abc":
        world.queue.add(world.event(name))
    assert world.told == []
    world.turns.turn()
    assert world.told == ["a", "armed"]
    world.queue.add(world.event("d"))
    for _ in range(3):
        world.turns.turn()
    assert world.told == [*("a", "armed", "b", "armed"), *("c", "armed", "d", "armed")]
    assert not world.turns.due


def test_what_is_taken_away_is_not_handled_and_later_events_are() -> None:
    world = World()
    world.queue.add(world.event("a"))
    assert len(world.queue.take_all()) == 1
    world.turns.turn()
    assert world.told == []
    world.queue.add(world.event("b"))
    world.turns.turn()
    assert world.told == ["b", "armed"]


def test_waiting_and_working_are_measured_apart() -> None:
    world = World()
    world.queue.add(world.event("a", takes_us=30))
    world.queue.add(world.event("b"))
    world.turns.time += 5
    world.turns.turn()
    world.turns.turn()
    assert world.kept.handled == [(5, 30), (35, 0)]


def test_an_event_that_brings_another_asks_for_one_turn() -> None:
    world = World()
    world.queue.add(lambda: world.queue.add(world.event("next")))
    world.turns.turn()
    assert len(world.turns.due) == 1
    world.turns.turn()
    assert world.told == ["armed", "next", "armed"]
