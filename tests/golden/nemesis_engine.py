"""Carries out a story of the nemesis: the one part of the goldens that knows who does that.

Now it is ``nemesis.fault_machine``, driven by ``harness.run.nemesis_driver`` with its threads.
Whoever takes their place has a function ``carried_out`` of the same kind, and stories, world,
rendering and golden files stay as they are.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.harness.run.evidence import Observer
from splitbrain.harness.run.nemesis_driver import NemesisDriver
from splitbrain.harness.run.progress import Progress
from splitbrain.nemesis.aim import Patience
from tests.golden.baton import BatonLock, BatonStop, FaultPool, ProbePool
from tests.golden.nemesis_world import Entry, Said, Scene, VirtualClock
from tests.golden.story import LOAD_START_MS, Story

_NS_PER_MS = 1_000_000


class Record(msgspec.Struct, frozen=True):
    """All that a story has shown."""

    story: Story
    #: Microseconds since the run's start, and what was seen.
    entries: list[tuple[int, Entry]]
    #: When all was over, and what was raised then.
    ended_us: int
    raised: BaseException | None
    #: Why the run ends, by what it was told.
    failure: HarnessError | None
    is_interrupted: bool
    #: Nodes that may be down.
    down: tuple[NodeName, ...]
    #: Nodes that do not run, by their states.
    not_running: dict[str, str]
    #: States still in force: their kind, and where.
    bad: dict[str, list[Any]]


def carried_out(story: Story) -> Record:
    """The story, from the start of the load until everything is healed."""
    scene = Scene(story)
    with pytest.MonkeyPatch.context() as patch:
        driver = _driver(story, scene, patch)
        raised: Exception | None = None
        start = LOAD_START_MS * _NS_PER_MS
        try:
            driver.run(start, start + story.load_ms * _NS_PER_MS)
        # Whatever it is, it is part of the story.
        except Exception as error:  # noqa: BLE001
            raised = error
    world = scene.world
    return Record(
        story=story,
        entries=scene.tape.entries,
        ended_us=scene.baton.now,
        raised=raised,
        failure=scene.stop.failure,
        is_interrupted=scene.stop.interrupted,
        down=scene.down.all(),
        not_running={node: state for node, state in world.states.items() if state != "running"},
        bad={kind: list(places) for kind, places in world.bad.items() if places},
    )


def _driver(story: Story, scene: Scene, patch: pytest.MonkeyPatch) -> NemesisDriver:
    """The driver, whose threads, locks and waits are those of the scene."""
    baton, world, tape, runtime = scene.baton, scene.world, scene.tape, scene.runtime

    def patiently(action: Callable[[], Any], *more: Any) -> Any:
        return BatonStop(baton).retrying(*more)(action)

    def probes(*_: object, **__: object) -> ProbePool:
        return ProbePool(runtime.begin_look, runtime.end_look)

    def pool(workers: int, **_: object) -> FaultPool:
        return FaultPool(baton, workers)

    patch.setattr("splitbrain.harness.run.nemesis_driver.ThreadPoolExecutor", pool)
    patch.setattr("splitbrain.harness.run.nemesis_driver.Stop", lambda: BatonStop(baton))
    patch.setattr("splitbrain.harness.run.evidence.ThreadPoolExecutor", probes)
    patch.setattr("splitbrain.harness.run.acting.patiently", patiently)
    clock: Any = VirtualClock(baton)
    fake: Any = runtime
    lines: Any = tape
    progress = Progress(clock, lines, world.traffic)
    progress.listen(lambda line: tape.append(Said(line)))
    watch = world.watch if story.tells else None
    driver = NemesisDriver(
        schedule=story.schedule,
        runtime=fake,
        leader=world.ask_leader,
        observer=Observer(
            fake, world.traffic, clock, answers=runtime.answers, watch=watch, members=fake
        ),
        recovered=lambda: None,
        clock=clock,
        faults=lines,
        schedule_file=lines,
        down=scene.down,
        progress=progress,
        stop=scene.stop,
        patience=Patience(),
        watch=watch,
        members=fake,
        record_at=lambda file, before: f"the record behind {len(before)} bytes of {file}",
        observers=story.observers,
    )
    lock: Any = BatonLock(baton)
    driver._acting = lock
    return driver
