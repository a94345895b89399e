"""The course of a run: its steps in ``phases.jsonl``, and the leaders seen in ``leaders.jsonl``.

A reader learns from the steps whether the run came to its end, whether the nodes converged before
their logs were read, and which node exited without having been asked to. Written as it happens, so
that a dead run shows how far it came.
"""

import contextlib
from pathlib import Path
from typing import Final, Literal

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.names import Int64, NodeName
from splitbrain.history.run_folder import RunFolder

#: The last step of a run, after which its evidence is sealed, and what says that it failed.
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
    "failed",
    "node-exited",
]


class Phase(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of ``phases.jsonl``."""

    #: Nanoseconds since the run's start, monotonic.
    time: Int64
    phase: PhaseName
    #: node-exited: the node; else None.
    node: str | None = None
    #: node-exited: its exit code, where known.
    exit_code: Int64 | None = None
    #: In words: what is missing for convergence, why the run failed.
    detail: str | None = None
    #: Events in the history by then.
    events: Int64 = 0
    #: failed: when the failure was first noticed, ns since the run's start.
    since: Int64 | None = None


class LeaderSighting(msgspec.Struct, frozen=True):
    """One line of ``leaders.jsonl``: from here on this was seen from outside."""

    #: When the nodes had answered, nanoseconds since the run's start.
    time: Int64
    #: None while no node that answered claimed to lead.
    leader: NodeName | None
    epoch: Int64 | None


def phases_path(run_folder: Path) -> Path:
    """Where the phases of a run stand."""
    return RunFolder(run_folder).phases


def read_phases(run_folder: Path) -> list[Phase]:
    """The phases of a run, in order; empty for a folder of other origin.

    A torn last line is left out.
    """
    path = phases_path(run_folder)
    if not path.exists():
        return []
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return [msgspec.json.decode(line, type=Phase) for line in whole.splitlines() if line]


class _Phase(msgspec.Struct, frozen=True):
    phase: str


def came_to_its_end(folder: RunFolder) -> bool:
    """Whether the run came to where its evidence is sealed.

    Of a file that is torn or broken the lines that can be read count.
    """
    try:
        lines = folder.phases.read_bytes().splitlines()
    except OSError:
        return False
    reached: set[str] = set()
    for line in lines:
        with contextlib.suppress(*UNREADABLE):
            reached.add(msgspec.json.decode(line, type=_Phase).phase)
    return LAST_PHASE in reached and _FAILED not in reached
