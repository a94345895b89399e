"""Drives a schedule against the world with every arm, and reads back what was recorded."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.fault import Fault, FaultEvent
from splitbrain.harness.run.down_nodes import DownNodes
from splitbrain.harness.run.evidence import Observer
from splitbrain.harness.run.nemesis_driver import NemesisDriver
from splitbrain.harness.run.progress import Progress
from splitbrain.nemesis.aim import Patience
from tests.unit.harness.run.armed_world import ArmedWorld, WorldClock, WorldStop

#: A heal is waited for in real time, whatever the run does.
PATIENCE = Patience(healed_us=30_000)


class _Lines:
    def __init__(self) -> None:
        self.records: list[Any] = []

    def append(self, record: object) -> None:
        self.records.append(record)


class Driven:
    """One schedule, carried out."""

    def __init__(
        self,
        schedule: Sequence[Fault],
        deaf: Iterable[str] = (),
        load_s: float = 1000.0,
        missed: Mapping[str, Container[int]] | None = None,
        *,
        kind: type[ArmedWorld] = ArmedWorld,
    ) -> None:
        self.world = world = kind(deaf, missed)
        clock: Any = WorldClock(world)
        self.stop = WorldStop(world)
        faults: Any = _Lines()
        actual: Any = _Lines()
        phases: Any = _Lines()
        self.down = DownNodes()
        runtime: Any = world
        for _ in range(5):
            world.tick()
        progress = Progress(clock, phases, world.traffic)
        driver = NemesisDriver(
            schedule=schedule,
            runtime=runtime,
            leader=world.ask_leader,
            observer=Observer(
                runtime,
                world.traffic,
                clock,
                answers=world.answers,
                watch=world.watch,
                members=world,
            ),
            recovered=world.recovered,
            clock=clock,
            faults=faults,
            schedule_file=actual,
            down=self.down,
            progress=progress,
            stop=self.stop,
            patience=PATIENCE,
            watch=world.watch,
            members=world,
            record_at=lambda file, before: f"the record behind {len(before)} bytes of {file}",
        )
        self.failure: HarnessError | None = None
        try:
            driver.run(world.now, world.now + int(load_s * 1e9))
        except HarnessError as error:
            self.failure = error
        self.events: list[FaultEvent] = faults.records
        self.actual: list[Any] = actual.records

    def phases(self, index: int = 0) -> list[str]:
        return [event.phase for event in self.events if event.index == index]

    def evidence(self, phase: str, index: int = 0) -> str:
        return "; ".join(
            event.evidence or ""
            for event in self.events
            if (event.index, event.phase) == (index, phase)
        )


def fault(
    kind: str,
    target: str,
    at_ms: int = 1000,
    duration_ms: int = 6000,
    *,
    index: int = 0,
    **more: Any,
) -> Fault:
    return Fault(index, kind, target, at_ms * 1000, duration_ms * 1000, draw=11, **more)
