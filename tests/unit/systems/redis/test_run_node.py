"""The program of a node: configuration that outlives restarts, two programs that die together.

The programs are stand-ins on PATH, so that no Redis has to be installed.
"""

import inspect
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from splitbrain.systems.redis import run_node

#: A stand-in tells that it runs, then does what the file names: exits, or waits to be killed.
_STAND_IN = """#!/bin/sh
echo "$(basename "$0") $$"
exec {what}
"""


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    config = tmp_path / "config"
    config.mkdir()
    (config / "redis.conf").write_text("port 1\n")
    (config / "sentinel.conf").write_text("port 2\n")
    return config, tmp_path / "data"


class Started:
    """A node's program at work."""

    def __init__(self, folders: tuple[Path, Path], server: str, sentinel: str) -> None:
        programs = folders[0].parent / "bin"
        programs.mkdir(exist_ok=True)
        for name, what in (("redis-server", server), ("redis-sentinel", sentinel)):
            (programs / name).write_text(_STAND_IN.format(what=what))
            (programs / name).chmod(0o755)
        self.process = subprocess.Popen(
            [sys.executable, run_node.__file__, *map(str, folders)],
            env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def pids(self) -> list[int]:
        """Of both stand-ins, once they run."""
        assert self.process.stdout is not None
        return [int(self.process.stdout.readline().split()[1]) for _ in range(2)]

    def ended(self) -> tuple[int, str]:
        _, errors = self.process.communicate(timeout=20)
        return self.process.returncode, errors.strip()


def is_gone(pid: int) -> bool:
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_the_first_start_alone_copies_the_configuration(folders: tuple[Path, Path]) -> None:
    config, data = folders
    assert run_node.put_configuration(config, data)
    (data / "sentinel.conf").write_text("rewritten\n")
    assert not run_node.put_configuration(config, data)
    assert (data / "redis.conf").read_text() == "port 1\n"
    assert (data / "sentinel.conf").read_text() == "rewritten\n"


def test_a_copy_that_a_crash_left_unfinished_is_made_again(folders: tuple[Path, Path]) -> None:
    config, data = folders
    data.mkdir()
    (data / "redis.conf.unfinished").write_text("po")
    assert run_node.put_configuration(config, data)
    assert (data / "redis.conf").read_text() == "port 1\n"


@pytest.mark.parametrize("program", ["redis-server", "redis-sentinel"])
@pytest.mark.parametrize("code", [0, 1])
def test_either_program_takes_the_other_along(
    folders: tuple[Path, Path], program: str, code: int
) -> None:
    gate = folders[0].parent / "gate"
    os.mkfifo(gate)
    ends = f"sh -c 'read line < {gate}; exit {code}'"
    stays = "sleep 600"
    servers = (ends, stays) if program == "redis-server" else (stays, ends)
    started = Started(folders, *servers)
    pids = started.pids()
    gate.write_text("now\n")
    assert started.ended() == (1, f"{program} ended by itself with code {code}")
    assert all(is_gone(pid) for pid in pids)


def test_a_node_that_is_told_to_stop_stops_both(folders: tuple[Path, Path]) -> None:
    started = Started(folders, "sleep 600", "sleep 600")
    pids = started.pids()
    started.process.send_signal(signal.SIGTERM)
    assert started.ended() == (0, "")
    assert all(is_gone(pid) for pid in pids)


def test_a_node_that_is_told_to_stop_before_its_sentinel_started_stops(
    folders: tuple[Path, Path],
) -> None:
    # Nobody listens there, so that it is still waiting.
    (folders[0] / "sentinel.conf").write_text("sentinel monitor m 127.0.0.1 1 2\n")
    started = Started(folders, "sleep 600", "sleep 600")
    assert started.process.stdout is not None
    server = int(started.process.stdout.readline().split()[1])
    started.process.send_signal(signal.SIGTERM)
    assert started.ended() == (0, "")
    assert is_gone(server)


def test_a_killed_node_leaves_no_program_behind(folders: tuple[Path, Path]) -> None:
    started = Started(folders, "sleep 600", "sleep 600")
    pids = started.pids()
    ends = [os.pidfd_open(pid) for pid in pids]
    started.process.kill()
    started.ended()
    for end in ends:
        # Readable when the process is gone; else the test's own time limit speaks.
        select.select([end], [], [])
        os.close(end)


def test_a_missing_program_is_named(folders: tuple[Path, Path]) -> None:
    done = subprocess.run(
        [sys.executable, run_node.__file__, *map(str, folders)],
        env={"PATH": str(folders[0])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.strip() == "the program redis-server is not installed"


def test_wrong_arguments_show_the_usage() -> None:
    done = subprocess.run(
        [sys.executable, run_node.__file__], capture_output=True, text=True, check=False
    )
    assert done.returncode == 64
    assert "run_node.py CONFIG_FOLDER DATA_FOLDER" in done.stderr


def test_at_the_first_start_the_sentinel_waits_for_all_servers(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, data = folders
    (config / "sentinel.conf").write_text(
        "sentinel monitor m n1 7001 2\nsentinel known-replica m n2 7002\nsentinel myid x\n"
    )
    run_node.put_configuration(config, data)
    looks: list[tuple[str, int]] = []

    def listens(address: tuple[str, int]) -> bool:
        looks.append(address)
        return address == ("n1", 7001) or len(looks) > 3

    monkeypatch.setattr(run_node, "_listens", listens)
    monkeypatch.setattr(run_node, "_LOOK_INTERVAL_S", 0.0)
    run_node.Node(data)._await_servers()
    assert looks == [("n1", 7001), ("n2", 7002), ("n2", 7002), ("n2", 7002)]


def test_no_wait_is_one_that_a_library_for_wrong_clocks_refuses() -> None:
    # Seen: time.sleep ended the node with EINVAL in runs whose plans have clock faults.
    assert "time.sleep" not in inspect.getsource(run_node)
