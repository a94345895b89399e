"""CPU and memory of one container, read where the kernel keeps them.

The engine's own statistics take a second per container; the kernel's files take microseconds. They
are readable where the engine runs on this machine; elsewhere the engine is asked once, without its
second of waiting where it is new enough.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docker.models.containers import Container

#: Where the kernel shows control groups.
CGROUPS = Path("/sys/fs/cgroup")
_NANOSECONDS_PER_S = 1e9
_MICROSECONDS_PER_S = 1e6


class Gauge:
    """Finds a process's control groups once and reads them again and again.

    The process is the container's first in the host's numbering, 0 where it is not known.
    """

    def __init__(self, process: int, proc: Path = Path("/proc"), cgroups: Path = CGROUPS) -> None:
        self.process = process
        self._cpu: Path | None = None
        self._memory: Path | None = None
        groups = _groups(proc / str(process) / "cgroup") if process else {}
        unified = cgroups / groups.get("", "/").lstrip("/")
        if (unified / "cpu.stat").is_file() and (unified / "memory.current").is_file():
            self._cpu = self._memory = unified
        elif "cpuacct" in groups and "memory" in groups:
            self._cpu = _existing(cgroups, "cpuacct", groups, "cpuacct.usage")
            self._memory = _existing(cgroups, "memory", groups, "memory.usage_in_bytes")

    def read(self) -> tuple[float, int] | None:
        """CPU seconds used so far and bytes of memory in use, page cache apart; None: not here."""
        if self._cpu is None or self._memory is None:
            return None
        try:
            return self._cpu_seconds(self._cpu), self._memory_bytes(self._memory)
        except OSError:
            return None  # the group went away with its process

    def _cpu_seconds(self, group: Path) -> float:
        legacy = group / "cpuacct.usage"
        if legacy.is_file():
            return int(legacy.read_text()) / _NANOSECONDS_PER_S
        return _table(group / "cpu.stat")["usage_usec"] / _MICROSECONDS_PER_S

    def _memory_bytes(self, group: Path) -> int:
        legacy = group / "memory.usage_in_bytes"
        statistics = _table(group / "memory.stat")
        if legacy.is_file():
            return int(legacy.read_text()) - statistics.get("total_inactive_file", 0)
        return int((group / "memory.current").read_text()) - statistics.get("inactive_file", 0)


def control_group(
    process: int,
    controller: str,
    files: Sequence[str],
    proc: Path = Path("/proc"),
    cgroups: Path = CGROUPS,
) -> Path | None:
    """The folder of a process's control group that has one of these files; None: not here."""
    groups = _groups(proc / str(process) / "cgroup") if process else {}
    for file in files:
        unified = cgroups / groups.get("", "/").lstrip("/")
        if "" in groups and (unified / file).is_file():
            return unified
        found = _existing(cgroups, controller, groups, file) if controller in groups else None
        if found is not None:
            return found
    return None


def is_leaving(process: int, controller: str, proc: Path = Path("/proc")) -> bool:
    """Whether a process is out of its control group, as the dying are in cgroup v1 alone."""
    return bool(process) and _groups(proc / str(process) / "cgroup").get(controller) == "/"


def ask_engine(container: Container) -> tuple[float, int] | None:
    """Return the same figures from the engine; None while the container does not run."""
    engine: Any = container
    statistics: dict[str, Any] = engine.stats(stream=False, one_shot=True)
    memory: dict[str, Any] = statistics.get("memory_stats") or {}
    if "usage" not in memory:
        return None
    details: dict[str, int] = memory.get("stats") or {}
    cache = details.get("inactive_file", details.get("total_inactive_file", 0))
    used = statistics["cpu_stats"]["cpu_usage"]["total_usage"]
    return used / _NANOSECONDS_PER_S, int(memory["usage"]) - int(cache)


def _groups(file: Path) -> dict[str, str]:
    """Controller to path, the unified hierarchy under the empty name; empty if unreadable."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return {}
    groups: dict[str, str] = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            groups[controller] = path
    return groups


def _existing(cgroups: Path, controller: str, groups: dict[str, str], file: str) -> Path | None:
    path = groups[controller].lstrip("/")
    for name in (controller, "cpu,cpuacct", "cpuacct,cpu"):
        group = cgroups / name / path
        if (group / file).is_file():
            return group
    return None


def _table(file: Path) -> dict[str, int]:
    pairs = (line.split() for line in file.read_text().splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs}
