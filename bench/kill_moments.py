"""When a harness is killed: a step of its run, drawn uniformly, and a random delay after it.

The steps are seen from outside, in the files that the run writes. Pure of any killing: it says when
the moment has come.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.contracts.fault import FaultEvent, FaultPhase
from splitbrain.history.course import PhaseName, read_phases
from splitbrain.history.run_folder import RunFolder

_LOOK_INTERVAL_S = 0.02
_PATIENCE_S = 180.0


class Moment(msgspec.Struct, frozen=True):
    """A step and how long after it."""

    step: str
    delay_s: float

    def __str__(self) -> str:
        return f"{self.step} + {self.delay_s:.2f} s"


def _after(phase: PhaseName) -> Callable[[Path], bool]:
    return lambda folder: any(reached.phase == phase for reached in read_phases(folder))


def _at_fault(*phases: FaultPhase) -> Callable[[Path], bool]:
    """Whether the last that is told of any fault is one of these phases."""

    def seen(folder: Path) -> bool:
        path = RunFolder(folder).faults
        if not path.exists():
            return False
        whole, _, _ = path.read_bytes().rpartition(b"\n")
        lines = whole.splitlines()
        return bool(lines) and msgspec.json.decode(lines[-1], type=FaultEvent).phase in phases

    return seen


def _analysing(folder: Path) -> bool:
    return RunFolder(folder).analysis_log.exists()


#: Step to how it is seen in the run folder, and the longest delay after it, in seconds: about as
#: long as the step takes. ``starting`` is before there is a folder.
STEPS: Mapping[str, tuple[Callable[[Path], bool] | None, float]] = {
    "starting": (None, 1.5),
    "deploying": (_after("deploying"), 2.0),
    "deployed": (_after("deployed"), 1.0),
    "loading": (_after("load-started"), 4.0),
    "striking": (_at_fault("invoked"), 0.5),
    "in a fault": (_at_fault("verified", "not-bitten"), 0.5),
    "healing a fault": (_at_fault("healing"), 0.5),
    "healing": (_after("load-ended"), 1.0),
    "collecting": (_after("stopped"), 0.5),
    "taking down": (_after("collected"), 1.0),
    "judging": (_after("torn-down"), 1.5),
    "analysing": (_analysing, 8.0),
}

#: Steps amid a fault, in force or about to be or to go.
AMID_FAULTS: Final = ("striking", "in a fault", "healing a fault")


def draw(random_source: random.Random, steps: Sequence[str] = tuple(STEPS)) -> Moment:
    """Return a moment, each of these steps as likely as any other."""
    step = random_source.choice(steps)
    return Moment(step, random_source.uniform(0.0, STEPS[step][1]))


def await_moment(moment: Moment, runs_folder: Path, has_ended: Callable[[float], bool]) -> bool:
    """Wait for the moment; False if the harness ended before it came.

    Args:
        moment: to wait for.
        runs_folder: in which the only run makes its folder.
        has_ended: waits that many seconds at most; whether the harness has ended.
    """
    seen, _ = STEPS[moment.step]
    deadline = time.monotonic() + _PATIENCE_S
    while seen is not None:
        folder = run_folder(runs_folder)
        if folder is not None and seen(folder):
            break
        if has_ended(_LOOK_INTERVAL_S) or time.monotonic() > deadline:
            return False
    return not has_ended(moment.delay_s)


def run_folder(runs_folder: Path) -> Path | None:
    """Return the folder of the only run below ``runs_folder``; None before it is made."""
    found = sorted(path.parent for path in runs_folder.glob("*/*/lock"))
    return found[0] if found else None
