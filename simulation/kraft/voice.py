"""State events and log of a simulated node, kept in memory.

Must never say anything that the node has not said.
"""

from typing import Any

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from splitbrain.history.timeline_records import TimelineDisk, TimelineLog, TimelineState
from splitbrain.nodes.server.host.surroundings import Level
from splitbrain.simulation.kraft.timers import NodeClock
from splitbrain.simulation.world.world import SimulatedWorld


class StateEvents:
    """The events of all lives; implements ``nodes.server.host.surroundings.StateEventSink``."""

    def __init__(self, world: SimulatedWorld, name: NodeName, clock: NodeClock) -> None:
        self._world = world
        self._name = name
        self._clock = clock
        self._incarnation = -1
        self._sequence = 0
        self.events: list[StateEvent] = []

    def begin(self, incarnation: int) -> None:
        """Begin a life: what follows belongs to it."""
        self._incarnation = incarnation
        self._sequence = 0

    def write(
        self,
        kind: Any,
        epoch: int,
        *,
        role: str | None = None,
        leader: int | None = None,
        offset: int | None = None,
        base_offset: int | None = None,
        reason: str | None = None,
        detail: dict[str, Any] | None = None,
    ) -> None:
        """Keep one event, stamped with virtual time."""
        event = StateEvent(
            node=self._name,
            sequence=self._sequence,
            incarnation=self._incarnation,
            kind=kind,
            epoch=epoch,
            role=role,
            leader=leader,
            offset=offset,
            base_offset=base_offset,
            reason=reason,
            node_time=self._clock.now() * 1_000,
            time=self._world.now * 1_000,
            detail=detail or {},
        )
        self._sequence += 1
        self.events.append(event)
        if self._world.is_recording:
            self._tell(event)

    def close(self) -> None:
        """Nothing to close."""

    def _tell(self, event: StateEvent) -> None:
        """The event as a record of the story of the run."""
        now, name = self._world.now, self._name
        match event.kind:
            case "started" | "role":
                state = TimelineState(
                    time=now,
                    node=name,
                    role=event.role or "",
                    epoch=event.epoch,
                    leader=None if event.leader is None else f"n{event.leader}",
                    detail=event.reason or "",
                )
                self._world.record(state)
            case "high-watermark" | "commit" if event.offset is not None:
                self._world.record(
                    TimelineLog(time=now, node=name, event="high-watermark", offset=event.offset)
                )
            case "append" | "truncate" if event.offset is not None:
                self._world.record(
                    TimelineLog(time=now, node=name, event=event.kind, offset=event.offset)
                )
            case "fatal":
                self._world.record(
                    TimelineDisk(time=now, node=name, name="fatal", detail=event.reason or "")
                )
            case _:
                pass


class LogLines:
    """Warnings and errors of all lives; implements ``nodes.server.host.surroundings.LogSink``."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world
        #: Virtual time, level, message, facts.
        self.lines: list[tuple[int, Level, str, dict[str, Any]]] = []

    def write(self, level: Level, message: str, **fields: Any) -> None:
        """Keep one line, unless it is mere information."""
        if level != "info":
            self.lines.append((self._world.now, level, message, fields))
