"""Whatever is lost and whoever leads: no broker believes too much, and all run in the end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.broker.lifecycle import BrokerState, Lifecycle
from tests.unit.nodes.broker.broker_world import CONTROLLERS, Process, World

STEPS = st.lists(
    st.tuples(
        st.sampled_from(("elect", "nobody", "freeze", "thaw", "lag", "keep up", "restart", "wait")),
        st.integers(0, 2),
        st.integers(1, 6000),
    ),
    max_size=25,
)


class Course:
    """Three brokers in a world in which things go wrong."""

    def __init__(self, seed: int, loss: float) -> None:
        self.world = World(seed)
        self.world.loss = loss
        self.lives = 1
        self.living = [self.world.start(broker_id) for broker_id in (1, 2, 3)]

    def act(self, action: str, who: int, milliseconds: int) -> None:
        world, process = self.world, self.living[who]
        match action:
            case "elect":
                world.elect(CONTROLLERS[who])
            case "nobody":
                world.elect(None)
            case "freeze":
                process.freeze()
            case "thaw" if process.is_frozen:
                process.thaw()
            case "lag" | "keep up":
                process.lags = action == "lag"
            case "restart":
                process.freeze()
                self._begin_another_life(who)
            case _:
                pass
        world.run(milliseconds / 1000)

    def _begin_another_life(self, who: int) -> None:
        self.lives += 1
        self.living[who] = self.world.start(who + 1, self.lives)

    def heal(self) -> None:
        world = self.world
        world.loss = 0
        world.elect(CONTROLLERS[0])
        for process in self.living:
            process.lags = False
            if process.is_frozen:
                process.thaw()
        for _ in range(40):
            for who, process in enumerate(self.living):
                if process.stopped is not None:
                    # It could not register in time: its supervisor starts it again.
                    assert not process.stopped.clean
                    self._begin_another_life(who)
            world.run(1)


@given(st.integers(0, 1 << 16), st.sampled_from((0.0, 0.1, 0.4, 0.8)), STEPS)
def test_every_course_ends_with_brokers_that_run(
    seed: int, loss: float, steps: list[tuple[str, int, int]]
) -> None:
    course = Course(seed, loss)
    for step in steps:
        course.act(*step)
    course.heal()
    for process in course.living:
        assert process.state is BrokerState.RUNNING
        assert not process.lifecycle.is_fenced
        registered = course.world.cluster.image.brokers[process.broker_id]
        assert not registered.fenced
        assert registered.broker_epoch == process.lifecycle.broker_epoch


def test_a_broker_that_believes_too_much_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def believes_its_state(lifecycle: Lifecycle) -> bool:
        return lifecycle.state is not BrokerState.RUNNING

    monkeypatch.setattr(Lifecycle, "is_fenced", property(believes_its_state))
    world = World()
    process: Process = world.start(1)
    with pytest.raises(AssertionError):
        world.run(5)
    assert process.state is BrokerState.RUNNING
