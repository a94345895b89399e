"""Budget of processor time and memory of a child process: kept by itself, watched by its parent.

Used by the harness and Spark's workers to judge parts of histories in children. The child asks its
budget whether to stop; the parent kills a part that never asks. Time is that of a processor: on a
machine with other work a part gets a fifth of one, say, and by a clock on the wall it would be
undecided there and decided elsewhere.
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
#: Share of a processor below which a part is taken to wait for what never comes.
_BUSY_SHARE_MIN: Final = 0.02
#: Wall time of a part in budgets, however little of a processor it got.
_WALL_BUDGETS_MAX: Final = 20


class ProcessBudget:
    """Budget of the part that runs now; meets ``Budget``."""

    def __init__(self, time_budget_s: float, memory_budget_mib: int) -> None:
        self._time_budget_s = time_budget_s
        self._wall_s_max = _WALL_BUDGETS_MAX * time_budget_s
        self._memory_budget_mib = memory_budget_mib
        self._used_before = time.process_time()
        self._started = self._memory_seen = time.monotonic()

    def exhausted(self) -> str | None:
        """Return the reason to stop now, or None to go on."""
        now = time.monotonic()
        used = time.process_time() - self._used_before
        if used > self._time_budget_s or now - self._started > self._wall_s_max:
            return f"time budget of {self._time_budget_s:g} s used up"
        if now - self._memory_seen > _MEMORY_INTERVAL_S:
            self._memory_seen = now
            if resident_mib(os.getpid()) > self._memory_budget_mib * _MEMORY_SHARE_SOFT:
                return f"memory budget of {self._memory_budget_mib} MiB used up"
        return None


class PartClock:
    """Time that a child has spent on a part, as its parent sees it; begins when it is made."""

    def __init__(self, process_id: int) -> None:
        self._process_id = process_id
        self._used_before = processor_seconds(process_id)
        self._started = time.monotonic()

    @property
    def wall_s(self) -> float:
        """Seconds since the part began."""
        return time.monotonic() - self._started

    def is_used_up(self, seconds: float) -> bool:
        """Whether the part had so many seconds of a processor, or waits instead of computing."""
        wall = self.wall_s
        if wall <= seconds:
            return False
        used = processor_seconds(self._process_id) - self._used_before
        is_waiting = used < wall * _BUSY_SHARE_MIN
        return used > seconds or is_waiting or wall > _WALL_BUDGETS_MAX * seconds


def processor_seconds(process_id: int) -> float:
    """Return the processor time of a process with all its threads, in steps of about 10 ms.

    0 if it is gone, and where there is no ``/proc``: a part then has its budget by the wall clock.
    """
    try:
        # The name of the program, in brackets, may hold anything; fields 14 and 15 follow it.
        fields = Path(f"/proc/{process_id}/stat").read_bytes().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError):
        return 0.0


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
