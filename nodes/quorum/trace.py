"""One line of text per event, effect or message, for stories, transcripts and logs.

The same object always gives the same line; bytes appear by their length. Never parsed back.
"""

from collections import deque
from typing import Final, cast

import msgspec

from splitbrain.nodes.quorum.effects import Effect
from splitbrain.nodes.quorum.events import Event
from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, Microseconds
from splitbrain.nodes.quorum.messages import ErrorCode

#: Steps that a story has.
STORY_EVENTS_COUNT: Final = 40
#: Fields that carry no news in a trace.
_SILENT = ("cluster_id", "max_bytes", "max_wait_ms", "log_start_offset", "incarnation")
#: Fields that are news only when they are true.
_SILENT_WHEN_FALSE = ("refused",)


def describe(thing: msgspec.Struct) -> str:
    """``ClassName field=value ...``, nested messages in parentheses."""
    fields = [
        f"{name}={_value(getattr(thing, name))}"
        for name in thing.__struct_fields__
        if name not in _SILENT
        and not _is_empty(getattr(thing, name))
        and not (name in _SILENT_WHEN_FALSE and getattr(thing, name) is False)
    ]
    return " ".join((type(thing).__name__, *fields))


def _is_empty(value: object) -> bool:
    return value is None or value in ((), b"") or value is ErrorCode.NONE


def _value(value: object) -> str:
    if isinstance(value, ErrorCode):
        return value.name
    if isinstance(value, msgspec.Struct):
        return f"({describe(value)})"
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        return f"[{', '.join(_value(item) for item in items)}]"
    if isinstance(value, bytes):
        return f"{len(value)}B"
    if isinstance(value, str) and len(value) == len(NO_DIRECTORY) and " " not in value:
        return value[-4:]
    if isinstance(value, str) and " " in value:
        return f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else str(value)


class Story:
    """The last events of a replica and what came of them, which go with an error.

    Keeps the objects and writes them out only when somebody reads.
    """

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
