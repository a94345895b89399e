"""Reads that no sound system gives, planted in a synthetic world before it is written."""

from typing import Any

import msgspec

from tests.spark.run_folders import MS, SECOND, World


def read_stale(world: World) -> None:
    """Let the last read of a register return the first value that was written to it."""
    written = next(event for event in world.acknowledged() if event.f == "write")
    place = max(
        place
        for place, event in enumerate(world.events)
        if event.type == "ok" and event.f == "read" and event.key == written.key
        if not event.final
    )
    world.events[place] = msgspec.structs.replace(world.events[place], value=written.value)


def read_set(world: World, key: str, elements: list[Any]) -> None:
    """Add the first of the elements to a set, then let a read return all of them."""
    at = max(event.time for event in world.events) + SECOND
    done = {"key": key, "node": world.nodes[0], "process": 2_000_000, "position": None}
    add = {**done, "f": "add", "argument": elements[0], "result": elements[0]}
    read = {**done, "f": "read", "argument": None, "result": elements}
    for number, operation in enumerate((add, read)):
        world.record(at + number * MS, "invoke", operation)
        world.record(at + number * MS + MS // 2, "ok", operation)
