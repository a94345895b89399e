"""Control groups of nodes, in both layouts; the kernel's part is played by plain files."""

import errno
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from splitbrain.contracts.arms import MemoryState
from splitbrain.contracts.errors import CapabilityError
from splitbrain.contracts.names import NodeName
from splitbrain.runtimes import control_groups
from splitbrain.runtimes.control_groups import Controller, NodeGroups, sweep_groups
from splitbrain.runtimes.local.processes import LocalProcesses
from splitbrain.runtimes.owners import this_process

N1, N2 = NodeName("n1"), NodeName("n2")
MIB = 1 << 20


def give_files(monkeypatch: pytest.MonkeyPatch, files: Mapping[str, str]) -> None:
    """From now on a new group has the files that the kernel would give it."""
    make = Path.mkdir

    def mkdir(folder: Path, *words: Any, **more: Any) -> None:
        make(folder, *words, **more)
        for name, content in files.items():
            (folder / name).write_text(content)

    monkeypatch.setattr(Path, "mkdir", mkdir)


V1 = {
    "cpu.cfs_quota_us": "-1",
    "cpu.cfs_period_us": "100000",
    "memory.limit_in_bytes": str(1 << 62),
    "memory.memsw.limit_in_bytes": str(1 << 62),
    "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
}
V2 = {
    "cpu.max": "max 100000",
    "memory.max": "max",
    "memory.swap.max": "max",
    "memory.events": "low 0\nmax 3\noom 0\noom_kill 0\n",
}


@pytest.fixture(params=[V1, V2], ids=["v1", "v2"])
def bases(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[Controller, Path]:
    give_files(monkeypatch, request.param)
    return {"cpu": tmp_path, "memory": tmp_path}


def test_a_share_is_as_set_and_none_once_undone(bases: dict[Controller, Path]) -> None:
    groups = NodeGroups([N1, N2], bases)
    assert groups.cpu_share(N1) is None
    groups.limit_cpu(N1, 0.25)
    assert groups.cpu_share(N1) == 0.25
    assert groups.cpu_share(N2) is None
    groups.limit_cpu(N1, None)
    assert groups.cpu_share(N1) is None


def test_memory_is_limited_without_swap_and_let_go(bases: dict[Controller, Path]) -> None:
    groups = NodeGroups([N1], bases)
    (folder,) = groups.folders(N1)
    groups.limit_memory(N1, 40 * MIB)
    limited = {path.name: path.read_text() for path in Path(folder).iterdir()}
    assert str(40 * MIB) in limited.values()
    assert limited.get("memory.swap.max", "0") == "0"
    groups.limit_memory(N1, None)
    there = {path.name: path.read_text() for path in Path(folder).iterdir()}
    assert str(40 * MIB) not in there.values()


def test_a_memory_limit_and_its_kills_are_read_back(bases: dict[Controller, Path]) -> None:
    codes = [None, None, 137]
    asked: list[str] = []

    def exit_code(_action: str, _node: NodeName, method: str) -> int | None:
        asked.append(method)
        return codes[len(asked) - 1]

    processes = LocalProcesses(exit_code, lambda: bases)
    (folder,) = processes.make_groups([N1])[N1]
    assert processes.memory(N1) == MemoryState(None, was_ended=False)
    events = next(Path(folder).glob("memory.[oe][ov][me]*"))
    # A process ended before the limit says nothing of it.
    events.write_text("oom_kill 2\n")
    processes.limit_memory(N1, 40)
    assert processes.memory(N1) == MemoryState(40, was_ended=False)
    events.write_text("oom_kill 3\n")
    assert processes.memory(N1) == MemoryState(40, was_ended=True)
    # Whoever starts it next must find it gone.
    assert not asked
    processes.unlimit_memory(N1)
    assert asked == ["exit_code"] * 3
    assert processes.memory(N1) == MemoryState(None, was_ended=False)


def test_a_sweep_spares_groups_whose_maker_lives(tmp_path: Path) -> None:
    bases: dict[Controller, Path] = {"cpu": tmp_path}
    groups = NodeGroups([N1], bases)
    assert sweep_groups(bases) == 0
    assert Path(groups.folders(N1)[0]).is_dir()
    groups.remove()
    groups.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_removes_dead_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bases: dict[Controller, Path] = {"cpu": tmp_path}
    NodeGroups([N1, N2], bases)
    (tmp_path / "somebody's").mkdir()
    (tmp_path / "splitbrain:strange").mkdir()
    monkeypatch.setattr(control_groups, "is_known_dead", lambda owner: owner == this_process())
    assert sweep_groups(bases) == 2
    assert {path.name for path in tmp_path.iterdir()} == {"somebody's", "splitbrain:strange"}


def test_without_control_groups_limits_are_refused_by_name() -> None:
    processes = LocalProcesses(_nobody, dict)
    assert processes.make_groups([N1]) == {}
    assert processes.throttled(N1) is None
    with pytest.raises(CapabilityError, match="control group for cpu"):
        processes.throttle(N1, 0.5)
    with pytest.raises(CapabilityError, match="control group for memory"):
        processes.limit_memory(N1, 50)


def test_unprepared_nodes_are_refused_and_the_next_step_is_named(tmp_path: Path) -> None:
    processes = LocalProcesses(_nobody, lambda: {"cpu": tmp_path})
    with pytest.raises(CapabilityError, match=r"DeploymentSpec\.limits"):
        processes.throttle(N1, 0.5)


def test_a_node_using_more_is_killed_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cgroup v1 refuses such a limit as long as the memory is in use."""
    give_files(monkeypatch, V1)
    asked: list[str] = []
    processes = LocalProcesses(
        lambda _action, _node, method, *_words: asked.append(method), lambda: {"memory": tmp_path}
    )
    folders = processes.make_groups([N1])
    limit = NodeGroups.limit_memory

    def busy_until_killed(groups: NodeGroups, node: NodeName, size: int | None) -> None:
        if "kill" not in asked:
            raise OSError(errno.EBUSY, "Device or resource busy", "memory.limit_in_bytes")
        limit(groups, node, size)

    monkeypatch.setattr(NodeGroups, "limit_memory", busy_until_killed)
    processes.limit_memory(N1, 40)
    assert asked == ["kill"]
    assert (Path(folders[N1][0]) / "memory.limit_in_bytes").read_text() == str(40 * MIB)


def _nobody(*words: Any) -> None:
    raise AssertionError(f"nobody is to be asked: {words}")
