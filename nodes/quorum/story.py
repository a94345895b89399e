"""The last events of a replica and what came of them: the story that goes with an error.

Keeps the objects and writes them out only when somebody reads; never influences anything.
"""

from collections import deque
from typing import Final

from splitbrain.nodes.quorum.effects import Effect
from splitbrain.nodes.quorum.events import Event
from splitbrain.nodes.quorum.identifiers import Microseconds
from splitbrain.nodes.quorum.trace import describe

STORY_EVENTS_COUNT: Final = 40


class Story:
    """A ring of the last steps."""

    def __init__(self) -> None:
        self._steps: deque[tuple[int, Microseconds, Event, tuple[Effect, ...]]] = deque(
            maxlen=STORY_EVENTS_COUNT
        )

    def add(self, cause: int, now: Microseconds, event: Event, effects: tuple[Effect, ...]) -> None:
        """One step: its number, its time, what happened, what came of it."""
        self._steps.append((cause, now, event, effects))

    def lines(self) -> tuple[str, ...]:
        """Return the steps in words, oldest first, effects indented below their event."""
        lines: list[str] = []
        for cause, now, event, effects in self._steps:
            lines.append(f"#{cause} at {now} us: {describe(event)}")
            lines.extend(f"    {describe(effect)}" for effect in effects)
        return tuple(lines)
