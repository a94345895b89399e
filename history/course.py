"""Course of a run: its steps in ``phases.jsonl``, and the leaders seen in ``leaders.jsonl``.

The steps show whether the run came to its end, whether the nodes converged before their logs were
read, and which node exited unasked. Written as it happens, so that a dead run shows how far it
came.
"""

import contextlib
from pathlib import Path
from typing import Final, Literal

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.names import Int64, NodeName
from splitbrain.history.run_folder import RunFolder

#: Last step of a run, after which its evidence is sealed, and the step of a failure.
LAST_PHASE: Final = "torn-down"
_FAILED: Final = "failed"

PhaseName = Literal[
    "deploying",
    "deployed",
    "ready",
    "load-started",
    "load-ended",
    "healed",
    "converged",
    "not-converged",
    "final-reads-ended",
    "stopped",
    "collected",
    "torn-down",
    "interrupted",
    "stopped-at-violation",
    "failed",
    "node-exited",
]


class Phase(msgspec.Struct, frozen=True, omit_defaults=True):
    """Line of ``phases.jsonl``."""

    #: Nanoseconds since the run's start, monotonic.
    time: Int64
    phase: PhaseName
    #: Node of node-exited; else None.
    node: str | None = None
    #: Exit code of node-exited, if known.
    exit_code: Int64 | None = None
    #: Words: what is missing for convergence, why the run failed.
    detail: str | None = None
    #: Events in the history by then.
    events: Int64 = 0
    #: First notice of the failure, for failed, ns since the run's start.
    since: Int64 | None = None


class LeaderSighting(msgspec.Struct, frozen=True):
    """Line of ``leaders.jsonl``: the view from outside, from here on."""

    #: When the nodes had answered, nanoseconds since the run's start.
    time: Int64
    #: None while no answering node claimed to lead.
    leader: NodeName | None
    epoch: Int64 | None


def read_phases(run_folder: Path) -> list[Phase]:
    """Read the phases of a run, in order; empty for a folder of other origin.

    A torn last line is left out.
    """
    path = RunFolder(run_folder).phases
    if not path.exists():
        return []
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return [msgspec.json.decode(line, type=Phase) for line in whole.splitlines() if line]


class _Phase(msgspec.Struct, frozen=True):
    phase: str


def came_to_its_end(folder: RunFolder) -> bool:
    """Return whether the run came to the point where its evidence is sealed."""
    reached = _reached(folder)
    return LAST_PHASE in reached and _FAILED not in reached


def left_its_nodes(folder: RunFolder) -> bool:
    """Return whether the run began and ended before it removed its nodes; for a run that is dead.

    Whatever removed them later is unknown here.
    """
    reached = _reached(folder)
    return bool(reached) and LAST_PHASE not in reached


def _reached(folder: RunFolder) -> set[str]:
    """Return the steps that the run reached: of a torn or broken file the readable lines count."""
    try:
        lines = folder.phases.read_bytes().splitlines()
    except OSError:
        return set()
    reached: set[str] = set()
    for line in lines:
        with contextlib.suppress(*UNREADABLE):
            reached.add(msgspec.json.decode(line, type=_Phase).phase)
    return reached
