"""The child side of ``harness.workers``: performs parts of a judgement until its input ends.

Started as ``python -m harness.worker_process TIME_BUDGET_S MEMORY_BUDGET_MIB``, with frames in and
out. It ends with its parent, also while a part is computing. Nothing that a part prints may reach
the frames.
"""

import os
import pickle
import resource
import sys
import time
from pathlib import Path
from typing import Any

from harness.child_side import bodies_from, resolve
from harness.frames import take_over_pipes, write_frame

#: Share of the memory budget at which a part is asked to give up by itself.
_MEMORY_SHARE_SOFT = 0.9
#: How often the budget looks at the memory, at most.
_MEMORY_INTERVAL_S = 0.1


class ProcessBudget:
    """A budget of time and resident memory for the part that runs now."""

    def __init__(self, time_budget_s: float, memory_budget_mib: int) -> None:
        self._time_budget_s = time_budget_s
        self._memory_budget_mib = memory_budget_mib
        self._started = self._memory_seen = time.monotonic()

    def exhausted(self) -> str | None:
        """The reason to stop now, or None to go on."""
        now = time.monotonic()
        if now - self._started > self._time_budget_s:
            return f"time budget of {self._time_budget_s:g} s used up"
        if now - self._memory_seen > _MEMORY_INTERVAL_S:
            self._memory_seen = now
            if resident_mib(os.getpid()) > self._memory_budget_mib * _MEMORY_SHARE_SOFT:
                return f"memory budget of {self._memory_budget_mib} MiB used up"
        return None


def resident_mib(process_id: int) -> float:
    """Resident memory of a process in MiB; 0 if it is gone.

    Where there is no ``/proc`` the peak of this process stands in, and that of others is 0.
    """
    try:
        resident_pages = int(Path(f"/proc/{process_id}/statm").read_bytes().split()[1])
    except (FileNotFoundError, ProcessLookupError, IndexError):
        if process_id != os.getpid():
            return 0.0
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return resident_pages * os.sysconf("SC_PAGESIZE") / 2**20


def _perform(body: bytes, time_budget_s: float, memory_budget_mib: int) -> tuple[str, Any]:
    try:
        function, payload = pickle.loads(body)  # noqa: S301 - from our own parent
        budget = ProcessBudget(time_budget_s, memory_budget_mib)
        return "done", resolve(function)(payload, budget)
    except MemoryError:
        return "failed", "ran out of memory"
    # The one place where any exception of a checker must become a value: the parent turns it into
    # `unknown` with this reason, and the next part goes on.
    except Exception as error:  # noqa: BLE001
        return "failed", f"crashed: {type(error).__name__}: {error}"


def main() -> None:
    """A fresh interpreter's life."""
    work(float(sys.argv[1]), int(sys.argv[2]))


def work(time_budget_s: float, memory_budget_mib: int) -> None:
    """Announce readiness, then answer each part with its result."""
    incoming, outgoing = take_over_pipes()
    bodies = bodies_from(incoming)
    write_frame(outgoing, ("ready", None))
    while True:
        answer = _perform(bodies.get(), time_budget_s, memory_budget_mib)
        try:
            write_frame(outgoing, answer)
        # A result may fail to pickle in as many ways as there are results.
        except Exception as error:  # noqa: BLE001
            write_frame(outgoing, ("failed", f"crashed: its result cannot be sent: {error}"))


if __name__ == "__main__":
    main()
