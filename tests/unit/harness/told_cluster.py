"""A run folder whose fault coverage is known by construction: three nodes, three epochs.

Epoch 1 is led by n1, epoch 2 from 5.88 s by n2, epoch 3 from 22.79 s by n3. Times in ms.
"""

from pathlib import Path
from typing import Any

import msgspec

from splitbrain.contracts.fault import FaultEvent
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from splitbrain.history.run_folder import RunFolder
from tests.synthetic_runs import write_run

MS = 1_000_000

_Line = tuple[int, int, Any, int, dict[str, Any]]

#: (ms, incarnation, kind, epoch, more)
_TALES: dict[str, tuple[_Line, ...]] = {
    "n1": (
        (50, 0, "started", 0, {"role": "unattached"}),
        (200, 0, "role", 1, {"role": "leader", "leader": 1}),
        (201, 0, "append", 1, {"base_offset": 0, "offset": 1}),
        (250, 0, "commit", 1, {"base_offset": 0, "offset": 1}),
        (10_200, 0, "role", 2, {"role": "follower", "leader": 2}),
        (22_850, 0, "role", 3, {"role": "follower", "leader": 3}),
        (30_000, 0, "stopped", 3, {"reason": "asked to"}),
    ),
    "n2": (
        (55, 0, "started", 0, {"role": "unattached"}),
        (210, 0, "role", 1, {"role": "follower", "leader": 1}),
        (5_600, 0, "role", 2, {"role": "candidate"}),
        (5_880, 0, "role", 2, {"role": "leader", "leader": 2}),
        (5_881, 0, "append", 2, {"base_offset": 10, "offset": 11}),
        # A commit of records of epoch 1 alone.
        (5_890, 0, "commit", 2, {"base_offset": 9, "offset": 10}),
        (6_000, 0, "commit", 2, {"base_offset": 10, "offset": 11}),
        (21_990, 0, "append", 2, {"base_offset": 80, "offset": 81}),
        (26_060, 1, "started", 2, {"role": "resigned"}),
        (26_300, 1, "role", 3, {"role": "follower", "leader": 3}),
        (30_000, 1, "stopped", 3, {"reason": "asked to"}),
    ),
    "n3": (
        (52, 0, "started", 0, {"role": "unattached"}),
        (210, 0, "role", 1, {"role": "follower", "leader": 1}),
        (5_885, 0, "role", 2, {"role": "follower", "leader": 2}),
        (22_500, 0, "role", 3, {"role": "candidate"}),
        (22_790, 0, "role", 3, {"role": "leader", "leader": 3}),
        (22_791, 0, "append", 3, {"base_offset": 81, "offset": 82}),
        (22_900, 0, "commit", 3, {"base_offset": 81, "offset": 82}),
        (30_000, 0, "stopped", 3, {"reason": "asked to"}),
    ),
}
#: (kind, nodes, from, seen to have bitten, healed)
_FAULTS: tuple[tuple[str, tuple[str, ...], int, int | None, int], ...] = (
    ("partition", ("n1",), 5_000, 5_200, 10_000),
    ("pause", ("n3",), 5_700, 5_800, 5_850),
    ("loss", ("n2",), 5_950, None, 7_000),
    ("kill", ("n2",), 22_000, 22_041, 26_000),
    ("delay", ("n1", "n2"), 22_020, 22_400, 23_000),
    ("flip", ("n2",), 24_000, 24_100, 25_000),
    ("partition", ("n1", "n3"), 27_000, 27_200, 28_000),
    ("reset", ("n1",), 30_500, None, 30_600),
)
#: (kind, role, phase, faults, bitten), sorted.
COVERAGE = [
    ("delay", "follower", "unknown", 1, 1),
    ("delay", "unknown", "unknown", 1, 1),
    ("flip", "down", "settled", 1, 1),
    ("kill", "leader", "settled", 1, 1),
    ("loss", "leader", "new-leader", 1, 0),
    ("partition", "follower", "settled", 1, 1),
    ("partition", "leader", "settled", 2, 2),
    ("pause", "follower", "election", 1, 1),
    ("reset", "down", "election", 1, 0),
]


def fault_lines() -> list[FaultEvent]:
    """Return the record of the faults, and of one that never found its target."""
    events: list[FaultEvent] = []
    for index, (kind, nodes, start, seen, end) in enumerate(_FAULTS):
        story: list[tuple[int, Any]] = [(start, "invoked"), (end, "removed")]
        story.append((start + 300, "not-bitten") if seen is None else (seen, "verified"))
        names = tuple(map(NodeName, nodes))
        for at, phase in story:
            events.append(FaultEvent(at * MS, index, kind, phase, "random:1", names))
    missed = FaultEvent(29_000 * MS, len(_FAULTS), "wipe", "not-applicable", "laggard")
    return sorted([*events, missed], key=lambda event: event.time)


def write_told_run(root: Path) -> RunFolder:
    """Make the folder; all of it but faults and state events is a synthetic run's."""
    folder = RunFolder(write_run(root))
    folder.faults.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in fault_lines()))
    for node, tale in _TALES.items():
        lines = [
            StateEvent(
                node=node,
                sequence=sequence,
                incarnation=incarnation,
                kind=kind,
                epoch=epoch,
                time=at * MS,
                **more,
            )
            for sequence, (at, incarnation, kind, epoch, more) in enumerate(tale)
        ]
        content = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        folder.state_events(NodeName(node)).write_bytes(content)
    return folder
