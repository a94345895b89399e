"""Recorded runs of each kind of fault, as the nemesis' own stories leave them, and damaged ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from splitbrain.contracts.fault import ActualFault, FaultEvent
from splitbrain.contracts.names import RunId
from splitbrain.history.plan import encode_plan
from splitbrain.history.run_folder import RunFolder
from splitbrain.nemesis.fault_options import BEYOND_PROMISE
from splitbrain.nemesis.kinds import fault_kind
from splitbrain.nemesis.targets import THERE
from tests.golden.nemesis_engine import carried_out
from tests.golden.nemesis_stories import stories_of
from tests.golden.story import NODES, Happening, Story, awaited, planned
from tests.plans import plan_with

#: Stories of the nemesis whose runs are replayed.
_REPLAYED: Final = frozenset(
    {
        "in order, a fixed node", "other options", "nobody leads", "somebody leads late",
        "interrupted before", "the first act is broken", "spared, others are behind",
        "awaited, with a delay", "awaited, does not come", "beyond the promise",
    }
)  # fmt: skip
#: A run that was killed: the fault stands invoked, and nothing of its heal was written.
DEAD: Final = "the run died while it was in force"


def runs_of(name: str) -> Iterator[Story]:
    """The stories whose runs are replayed, of one kind: those in order first."""
    stories = stories_of(name)
    yield from stories[:1]
    kind = fault_kind(name)
    options: dict[str, Any] = {BEYOND_PROMISE: True} if kind.rule == "lies" else {}
    yield Story(name=DEAD, schedule=(planned(name, kind.first_target, options=options),))
    yield from (story for story in stories if story.name in _REPLAYED)
    # The last of them is that of the heal.
    yield [story for story in stories if story.name.endswith(" does nothing")][-1]
    yield from _two(name, options)


def _two(name: str, options: dict[str, Any]) -> Iterator[Story]:
    """Two faults of the kind, of which the second waits, and one that the interruption spares."""
    target = fault_kind(name).first_target
    when = awaited("commits", "leader", epoch=2, count=3, delay_ms=10, timeout_ms=700)
    there = target if fault_kind(name).refuses(THERE) else THERE
    yield Story(
        name="two, and the run is interrupted in the second",
        schedule=(
            planned(name, target, options=options, draw=3),
            planned(name, there, index=1, at_ms=6000, options=options, when=when),
            planned(name, target, index=2, at_ms=9000, options=options, draw=5),
        ),
        happenings=(Happening("interrupt", at_ms=9300),),
    )


def recorded(story: Story, folder: Path) -> RunFolder:
    """A run folder with what a story's run has left."""
    record = carried_out(story)
    kept = [entry for _, entry in record.entries]
    actual = [entry for entry in kept if isinstance(entry, ActualFault)]
    events = [entry for entry in kept if isinstance(entry, FaultEvent)]
    if story.name == DEAD:
        events = events[:2]
    return write_run(folder, [*story.schedule, *actual], events, len(story.schedule))


def write_run(folder: Path, schedule: list[Any], events: list[FaultEvent], count: int) -> RunFolder:
    """A run folder with these records, of a plan with so many faults."""
    run = RunFolder(folder)
    folder.mkdir(parents=True)
    plan = plan_with(
        run_id=RunId(folder.name),
        bugs=("stale-leader-reads",),
        settings={"quorum.fetch.timeout.ms": "900"},
        nodes=NODES,
        workload_options={"values": "unique"},
        nemesis="told in the story",
        planned_faults=count,
        operation_timeout_s=1.5,
    )
    run.plan.write_bytes(encode_plan(plan))
    run.schedule.write_bytes(_lines(schedule))
    run.faults.write_bytes(_lines(events))
    return run


def _lines(records: list[Any]) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)
