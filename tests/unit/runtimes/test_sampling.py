"""Figures come from the kernel's files, in both layouts that kernels have."""

from collections.abc import Callable
from pathlib import Path

import pytest

from splitbrain.runtimes.docker.processes import enforced_memory, enforced_share
from splitbrain.runtimes.docker.sampling import Gauge, is_leaving

MIB = 1024 * 1024


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    return tmp_path / "proc"


@pytest.fixture
def cgroups(tmp_path: Path) -> Path:
    return tmp_path / "cgroup"


def test_one_hierarchy(proc: Path, cgroups: Path) -> None:
    write(proc / "7" / "cgroup", "0::/system.slice/docker-abc.scope\n")
    group = cgroups / "system.slice" / "docker-abc.scope"
    write(group / "cpu.stat", "usage_usec 2500000\nuser_usec 1\n")
    write(group / "memory.current", f"{90 * MIB}\n")
    write(group / "memory.stat", f"anon 1\ninactive_file {20 * MIB}\n")
    assert Gauge(7, proc, cgroups).read() == (2.5, 70 * MIB)


@pytest.mark.parametrize("folder", ["cpuacct", "cpu,cpuacct"])
def test_a_hierarchy_per_controller(proc: Path, cgroups: Path, folder: str) -> None:
    write(
        proc / "7" / "cgroup",
        "9:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n0::/docker/abc\n",
    )
    write(cgroups / folder / "docker" / "abc" / "cpuacct.usage", "1500000000\n")
    memory = cgroups / "memory" / "docker" / "abc"
    write(memory / "memory.usage_in_bytes", f"{50 * MIB}\n")
    write(memory / "memory.stat", f"cache 1\ntotal_inactive_file {8 * MIB}\n")
    assert Gauge(7, proc, cgroups).read() == (1.5, 42 * MIB)


def test_an_engine_elsewhere_has_no_files_here(proc: Path, cgroups: Path) -> None:
    assert Gauge(7, proc, cgroups).read() is None
    assert Gauge(0, proc, cgroups).read() is None


def test_a_group_that_went_away_with_its_process_is_no_error(proc: Path, cgroups: Path) -> None:
    write(proc / "7" / "cgroup", "0::/abc\n")
    write(cgroups / "abc" / "cpu.stat", "usage_usec 1\n")
    write(cgroups / "abc" / "memory.current", "1\n")
    gauge = Gauge(7, proc, cgroups)
    (cgroups / "abc" / "cpu.stat").unlink()
    assert gauge.read() is None


def test_a_dying_process_has_left_its_group(proc: Path) -> None:
    write(proc / "7" / "cgroup", "2:memory:/\n1:cpu:/docker/abc\n")
    assert is_leaving(7, "memory", proc)
    assert not is_leaving(7, "cpu", proc)
    assert not is_leaving(8, "memory", proc)
    assert not is_leaving(0, "memory", proc)


ONE, TWO = "0::/abc\n", "1:cpu:/docker/abc\n0::/\n"
CPU = {"cpu.cfs_quota_us": "5000\n", "cpu.cfs_period_us": "100000\n"}
KILLED = {"memory.max": "4096\n", "memory.events": "max 7\noom_kill 1\n"}


@pytest.mark.parametrize(
    ("read", "groups", "folder", "files", "found"),
    [
        (enforced_share, ONE, "abc", {"cpu.max": "25000 100000\n"}, 0.25),
        (enforced_share, ONE, "abc", {"cpu.max": "max 100000\n"}, 0.0),
        (enforced_share, TWO, "cpu/docker/abc", CPU, 0.05),
        (
            *(enforced_share, "1:cpu,cpuacct:/docker/abc\n", "cpu,cpuacct/docker/abc"),
            *(CPU | {"cpu.cfs_quota_us": "-1\n"}, 0.0),
        ),
        (enforced_share, "0::/elsewhere\n", "abc", {"cpu.max": "25000 100000\n"}, None),
        (enforced_memory, ONE, "abc", KILLED, (4096, True)),
        (
            *(enforced_memory, ONE, "abc"),
            *({"memory.max": "max\n", "memory.events": "oom_kill 0\n"}, (0, False)),
        ),
        (
            *(enforced_memory, "1:memory:/docker/abc\n0::/\n", "memory/docker/abc"),
            {"memory.limit_in_bytes": "4096\n", "memory.oom_control": "oom_kill 2\n"},
            (4096, True),
        ),
        (enforced_memory, "0::/elsewhere\n", "abc", {"memory.max": "4096\n"}, None),
    ],
)
def test_what_is_enforced_is_read_in_every_layout(
    proc: Path,
    cgroups: Path,
    read: Callable[[int, Path, Path], object],
    groups: str,
    folder: str,
    files: dict[str, str],
    found: object,
) -> None:
    write(proc / "7" / "cgroup", groups)
    for name, content in files.items():
        write(cgroups / folder / name, content)
    assert read(7, proc, cgroups) == found
