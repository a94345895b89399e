"""Whatever faults strike, each direction of a connection delivers a prefix of what was sent.

In order, each message at most once; and all of it, if nothing was lost and everything healed.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import NetworkOptions
from splitbrain.simulation.world.network import SimulatedConnection
from splitbrain.simulation.world.world import SimulatedWorld
from tests.unit.simulation.world.empty_worlds import empty_world

PLACES = ("n1", "n2", "n3")
_CHANCES = st.sampled_from([0.0, 0.0, 0.1, 0.5])

NETWORKS = st.builds(
    NetworkOptions,
    delay_us_min=st.integers(0, 50),
    delay_us_max=st.integers(50, 500),
    slow_chance=_CHANCES,
    slow_us_max=st.just(3_000),
    reset_chance=st.sampled_from([0.0, 0.0, 0.02]),
    lost_answer_chance=st.sampled_from([0.0, 0.0, 0.05]),
    stall_chance=_CHANCES,
    stall_us_max=st.just(5_000),
    half_open_chance=st.sampled_from([0.0, 0.5, 1.0]),
)
_PLACE = st.sampled_from(PLACES)
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("connect"), _PLACE, _PLACE),
        st.tuples(st.just("send"), st.integers(0, 50), st.integers(1, 5)),
        st.tuples(st.just("close"), st.integers(0, 50), st.just(0)),
        st.tuples(st.just("cut"), _PLACE, _PLACE),
        st.tuples(st.just("restore"), _PLACE, _PLACE),
        st.tuples(st.just("clog"), _PLACE, st.integers(0, 2_000)),
        st.tuples(st.just("reset"), _PLACE, st.just(0)),
        st.tuples(st.just("crash"), _PLACE, st.just(0)),
        st.tuples(st.just("listen"), _PLACE, st.just(0)),
        st.tuples(st.just("wait"), st.integers(0, 3_000), st.just(0)),
        st.tuples(st.just("calm"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


class _Ends(msgspec.Struct):
    """Input and output of one connection, per direction."""

    sent: list[int]
    arrived: list[int]
    answered: list[int]
    answers: list[int]
    losses: int = 0
    is_dead: bool = False


class _Opener:
    def __init__(self, ends: _Ends) -> None:
        self._ends = ends

    def answered(self, message: Any) -> None:
        assert not self._ends.is_dead, "a closed or dead end is told nothing"
        self._ends.answers.append(message)

    def lost(self, reason: str, *, refused: bool) -> None:
        assert not self._ends.is_dead
        if refused:
            assert not self._ends.arrived, "refused: nobody ever listened"
        self._ends.losses += 1


class _Life:
    """One life of a server; answers everything."""

    def __init__(self, course: "_Course", place: str) -> None:
        self._course = course
        self._place = place
        self.is_over = False
        #: Connections whose end this life has heard of.
        self.gone: list[int] = []

    def requested(self, connection: int, source: str, message: tuple[int, int]) -> None:
        assert not self.is_over, "a dead process is told nothing"
        assert connection not in self.gone, "nothing comes after the end"
        number, value = message
        ends = self._course.ends[number]
        ends.arrived.append(value)
        ends.answered.append(value)
        self._course.world.network.answer(self._place, connection, value)

    def disconnected(self, connection: int) -> None:
        assert not self.is_over
        assert connection not in self.gone, "the end is heard of once"
        self.gone.append(connection)


class _Course:
    """Performs the acts."""

    def __init__(self, world: SimulatedWorld) -> None:
        self.world = world
        self.ends: list[_Ends] = []
        self._opened: list[tuple[str, SimulatedConnection]] = []
        self._lives: dict[str, _Life] = {}
        self._value = 0
        for place in PLACES:
            self.listen(place, 0)

    def listen(self, place: str, _: int) -> None:
        if place not in self._lives:
            self._lives[place] = _Life(self, place)
            self.world.network.listen(place, self._lives[place])

    def crash(self, place: str, _: int) -> None:
        life = self._lives.pop(place, None)
        if life is not None:
            life.is_over = True
            for ends, (source, _connection) in zip(self.ends, self._opened, strict=True):
                ends.is_dead = ends.is_dead or source == place
            self.world.network.crash(place)

    def connect(self, source: str, place: str) -> None:
        ends = _Ends([], [], [], [])
        self.ends.append(ends)
        self._opened.append((source, self.world.network.connect(source, place, _Opener(ends))))

    def send(self, which: int, count: int) -> None:
        if self._opened:
            number = which % len(self._opened)
            for _ in range(count):
                self._value += 1
                if not self.ends[number].is_dead:
                    self.ends[number].sent.append(self._value)
                self._opened[number][1].send((number, self._value))

    def close(self, which: int, _: int) -> None:
        if self._opened:
            number = which % len(self._opened)
            self.ends[number].is_dead = True
            self._opened[number][1].close()

    def cut(self, source: str, place: str) -> None:
        self.world.network.cut([Link(NodeName(source), NodeName(place))])

    def restore(self, source: str, place: str) -> None:
        self.world.network.restore([Link(NodeName(source), NodeName(place))])

    def clog(self, source: str, delay_us: int) -> None:
        links = [Link(NodeName(source), NodeName(place)) for place in PLACES]
        self.world.network.clog(links, delay_us)

    def reset(self, place: str, _: int) -> None:
        self.world.network.reset(NodeName(place))

    def wait(self, delay_us: int, _: int) -> None:
        self.world.run(self.world.now + delay_us)

    def calm(self, _: int, __: int) -> None:
        self.world.network.calm_down()

    def perform(self, acts: list[tuple[str, Any, Any]]) -> None:
        for name, first, second in acts:
            act: Callable[[Any, Any], None] = getattr(self, name)
            act(first, second)
            self.hold()

    def hold(self) -> None:
        """The claim."""
        for ends in self.ends:
            assert ends.arrived == ends.sent[: len(ends.arrived)]
            assert ends.answers == ends.answered[: len(ends.answers)]
            assert ends.losses <= 1

    def heal(self) -> None:
        for source in PLACES:
            for place in PLACES:
                while self.world.network.is_cut(source, place):
                    self.restore(source, place)
        self.wait(100_000, 0)
        self.hold()


@given(network=NETWORKS, seed=st.integers(0, 2**16), acts=ACTS)
def test_each_direction_of_each_connection_delivers_a_prefix(
    network: NetworkOptions, seed: int, acts: list[tuple[str, Any, Any]]
) -> None:
    course = _Course(empty_world(network, seed))
    course.perform(acts)
    course.heal()


@given(
    network=NETWORKS.map(
        lambda drawn: msgspec.structs.replace(drawn, reset_chance=0.0, lost_answer_chance=0.0)
    ),
    seed=st.integers(0, 2**16),
    acts=ACTS.map(lambda acts: [act for act in acts if act[0] not in {"reset", "crash", "close"}]),
)
def test_without_loss_everything_arrives_once_all_is_healed(
    network: NetworkOptions, seed: int, acts: list[tuple[str, Any, Any]]
) -> None:
    course = _Course(empty_world(network, seed))
    course.perform(acts)
    course.heal()
    for ends in course.ends:
        assert ends.losses == 0
        assert ends.arrived == ends.sent
        assert ends.answers == ends.sent


@given(network=NETWORKS, seed=st.integers(0, 2**16), acts=ACTS)
def test_the_same_acts_give_the_same_course(
    network: NetworkOptions, seed: int, acts: list[tuple[str, Any, Any]]
) -> None:
    def ends() -> list[_Ends]:
        course = _Course(empty_world(network, seed))
        course.perform(acts)
        return course.ends

    assert ends() == ends()
