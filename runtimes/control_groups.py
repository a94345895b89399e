"""Control groups: limits that they enforce, and groups of this machine's nodes where it may be so.

Root may, and a user to whom a part of the tree was delegated. Groups are looked for as far up the
tree as they can be made, so that whoever sweeps later finds them at the same place. They are known
by their maker, and a sweep removes those whose maker is dead; a group that still holds a process
cannot be removed, and the kernel says so. Must never move a process that is no node's.

Sources: the kernel's documents on cgroup v1 (cpu, memory) and cgroup v2.
"""

import functools
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from splitbrain.contracts.names import NodeName
from splitbrain.runtimes.owners import is_known_dead, owner_of_word, this_process

Controller = Literal["cpu", "memory"]

_ROOT: Final = Path("/sys/fs/cgroup")
_PREFIX: Final = "splitbrain:"
#: File of a controller in cgroup v2, and in v1.
FILES: Final[Mapping[Controller, tuple[str, str]]] = {
    "cpu": ("cpu.max", "cpu.cfs_quota_us"),
    "memory": ("memory.max", "memory.limit_in_bytes"),
}
PERIOD_US: Final = 100_000
#: Cgroup v1 has no word for none: it tells the greatest number of pages.
_UNLIMITED_BYTES: Final = 1 << 60
_TRIAL_PATIENCE_S: Final = 10.0


def cpu_share(group: Path) -> float | None:
    """Return the share of one processor that a group may have; None: no limit."""
    if (group / "cpu.max").is_file():
        quota, period = (group / "cpu.max").read_text().split()
    else:
        quota = (group / "cpu.cfs_quota_us").read_text()
        period = (group / "cpu.cfs_period_us").read_text()
    return None if quota == "max" or int(quota) < 0 else int(quota) / int(period)


def memory_limit(group: Path) -> int | None:
    """Bytes that a group may have; None: no limit."""
    new = group / "memory.max"
    limit = (new if new.is_file() else group / "memory.limit_in_bytes").read_text().strip()
    return int(limit) if limit != "max" and 0 <= int(limit) < _UNLIMITED_BYTES else None


def memory_kills(group: Path) -> int:
    """Processes of a group that the kernel has ended for want of memory, ever."""
    new = group / "memory.events"
    lines = (new if new.is_file() else group / "memory.oom_control").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


class NodeGroups:
    """Groups of one run's nodes, below a folder for each controller.

    Raises:
        OSError: a group cannot be made.
    """

    def __init__(self, nodes: Iterable[NodeName], bases: Mapping[Controller, Path]) -> None:
        self._folders: list[Path] = []
        self._groups: dict[NodeName, dict[Controller, Path]] = {}
        name = _PREFIX + this_process().word().replace("/", ",") + f":{id(self):x}"
        for node in nodes:
            self._groups[node] = {}
            for controller, base in bases.items():
                group = base / name / node
                self._make(base / name)
                self._make(group)
                self._groups[node][controller] = group

    def _make(self, folder: Path) -> None:
        if folder.is_dir():
            return
        folder.mkdir()
        self._folders.append(folder)
        _pass_on(folder)

    def folders(self, node: NodeName) -> tuple[str, ...]:
        """Return the groups that each process of the node must enter."""
        return tuple(str(group) for group in dict.fromkeys(self._groups[node].values()))

    def limit_cpu(self, node: NodeName, share: float | None) -> None:
        """Let the node's processes have this share of one processor; None: what they can get."""
        group = self._groups[node]["cpu"]
        quota = None if share is None else round(share * PERIOD_US)
        if (group / "cpu.max").is_file():
            (group / "cpu.max").write_text(f"{'max' if quota is None else quota} {PERIOD_US}")
            return
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(-1 if quota is None else quota))

    def cpu_share(self, node: NodeName) -> float | None:
        """Return the share that the kernel enforces; None: no limit."""
        return cpu_share(self._groups[node]["cpu"])

    def limit_memory(self, node: NodeName, size: int | None) -> None:
        """Let the node's processes have so many bytes and no swap; None: what they can get.

        Raises:
            OSError: EBUSY where more is in use (cgroup v1; v2 kills by itself).
        """
        group = self._groups[node]["memory"]
        if (group / "memory.max").is_file():
            with suppress(FileNotFoundError):
                (group / "memory.swap.max").write_text("max" if size is None else "0")
            (group / "memory.max").write_text("max" if size is None else str(size))
            return
        text = str(-1 if size is None else size)
        files = [group / "memory.limit_in_bytes", group / "memory.memsw.limit_in_bytes"]
        there = [file for file in files if file.is_file()]
        # With swap must never be less than without: from above when it grows, from below else.
        grows = size is None or size > int(files[0].read_text())
        for file in reversed(there) if grows else there:
            file.write_text(text)

    def memory_limit(self, node: NodeName) -> int | None:
        """Bytes that the kernel lets the node's processes have; None: no limit."""
        return memory_limit(self._groups[node]["memory"])

    def memory_kills(self, node: NodeName) -> int:
        """Processes of the node that the kernel has ended for want of memory, ever."""
        return memory_kills(self._groups[node]["memory"])

    def remove(self) -> None:
        """Remove the groups, whose processes are gone. Safe to call twice."""
        while self._folders:
            with suppress(OSError):
                self._folders[-1].rmdir()
            self._folders.pop()


@functools.cache
def possible_bases() -> Mapping[Controller, Path]:
    """Where groups can be made and entered, tried once by each process; empty: nowhere."""
    found: dict[Controller, Path] = {}
    for controller in FILES:
        for base in _candidates(controller):
            if _works(base, controller):
                found[controller] = base
                break
    return found


def _candidates(controller: Controller) -> list[Path]:
    """This process's groups, the topmost first."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found: list[Path] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        names = controllers.split(",")
        if controllers and controller not in names:
            continue
        roots = (controller, controllers) if controllers else ("", "unified")
        for root in (_ROOT / name for name in roots):
            own = root / path.lstrip("/")
            found += [each for each in reversed([own, *own.parents]) if each.is_relative_to(root)]
    return list(dict.fromkeys(found))


def _works(base: Path, controller: Controller) -> bool:
    trial = base / f"{_PREFIX}{this_process().word().replace('/', ',')}:trial"
    try:
        trial.mkdir()
    except OSError:
        return False
    try:
        _pass_on(trial)
        if not any((trial / file).is_file() for file in FILES[controller]):
            return False
        inside = trial / "n1"
        inside.mkdir()
        try:
            entered = subprocess.run(
                ["sh", "-c", 'echo 0 >"$1/cgroup.procs"', "sh", str(inside)],
                capture_output=True,
                check=False,
                timeout=_TRIAL_PATIENCE_S,
            )
        finally:
            inside.rmdir()
        return entered.returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        with suppress(OSError):
            trial.rmdir()


def _pass_on(folder: Path) -> None:
    """In cgroup v2 a group's children have the controllers that it passes on to them."""
    control = folder / "cgroup.subtree_control"
    with suppress(OSError):
        if control.is_file():
            there = (folder / "cgroup.controllers").read_text().split()
            control.write_text(" ".join(f"+{name}" for name in FILES if name in there))


def sweep_groups(bases: Mapping[Controller, Path]) -> int:
    """Remove the groups that dead makers have left; how many nodes' there were."""
    removed = 0
    for base in dict.fromkeys(bases.values()):
        for folder in sorted(base.glob(f"{_PREFIX}*")):
            word = folder.name.removeprefix(_PREFIX).rpartition(":")[0].replace(",", "/")
            owner = owner_of_word(word)
            if owner is None or not is_known_dead(owner):
                continue
            for inside in sorted(each for each in folder.iterdir() if each.is_dir()):
                with suppress(OSError):
                    inside.rmdir()
                    removed += 1
            with suppress(OSError):
                folder.rmdir()
    return removed
