"""Budget of time and resident memory that a child process keeps by itself, and its memory probe.

Used by the harness and Spark's workers to judge parts of histories in children. It only asks to
stop: the parent kills a part that never polls it.
"""

import os
import resource
import time
from pathlib import Path
from typing import Final

#: Share of the memory budget at which a part is asked to give up.
_MEMORY_SHARE_SOFT: Final = 0.9
#: Shortest time between two looks at the memory.
_MEMORY_INTERVAL_S: Final = 0.1


class ProcessBudget:
    """Budget of the part that runs now; meets ``Budget``."""

    def __init__(self, time_budget_s: float, memory_budget_mib: int) -> None:
        self._time_budget_s = time_budget_s
        self._memory_budget_mib = memory_budget_mib
        self._started = self._memory_seen = time.monotonic()

    def exhausted(self) -> str | None:
        """Return the reason to stop now, or None to go on."""
        now = time.monotonic()
        if now - self._started > self._time_budget_s:
            return f"time budget of {self._time_budget_s:g} s used up"
        if now - self._memory_seen > _MEMORY_INTERVAL_S:
            self._memory_seen = now
            if resident_mib(os.getpid()) > self._memory_budget_mib * _MEMORY_SHARE_SOFT:
                return f"memory budget of {self._memory_budget_mib} MiB used up"
        return None


def resident_mib(process_id: int) -> float:
    """Return the resident memory of a process in MiB; 0 if it is gone.

    Where there is no ``/proc`` the peak of this process is returned, and 0 for others.
    """
    try:
        resident_pages = int(Path(f"/proc/{process_id}/statm").read_bytes().split()[1])
    except (OSError, IndexError):
        if process_id != os.getpid():
            return 0.0
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return resident_pages * os.sysconf("SC_PAGESIZE") / 2**20
