"""The course of a run, one line per step in ``phases.jsonl``: what was reached, and when.

A reader learns from it whether the run came to its end, whether the nodes converged before their
logs were read, and which node exited without having been asked to. Written as it happens, so that
a dead run shows how far it came.
"""

from pathlib import Path
from typing import Literal

import msgspec

from splitbrain.contracts.names import Int64
from splitbrain.history.run_folder import RunFolder

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
