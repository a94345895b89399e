"""Leftovers and disturbances of a campaign of kills; each thing that it must see."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from bench.host_snapshot import appeared, disturbed, processes
from bench.kill_moments import STEPS, Moment, await_moment, draw

BEFORE = {
    "containers": {"c1": "/foreign running i"},
    "rules": {"-A FOREIGN -j DROP": "1"},
    "mounts": {"/x": ""},
    "images": {"i": ""},
    "processes": {},
    "temporary folders": {},
}


@pytest.mark.parametrize(
    ("kind", "key", "text"),
    [
        ("containers", "c2", "/splitbrain-7-n1 exited i"),
        ("rules", "-A DOCKER -d 10.211.0.5/32 -j DNAT", "1"),
        ("mounts", "/run/docker/netns/abc", ""),
        ("processes", "17", "java"),
        ("temporary folders", "splitbrain-spark-x", ""),
    ],
)
def test_whatever_is_new_is_left_behind(kind: str, key: str, text: str) -> None:
    after = {**BEFORE, kind: {**BEFORE[kind], key: text}}
    assert appeared(BEFORE, after, None) == [f"{kind}: {key} {text}".strip()]
    assert disturbed(BEFORE, after, None) == []
    tokens = {"splitbrain-7", "10.211.0.5/", "netns/abc"}
    assert appeared(BEFORE, after, tokens) == [f"{kind}: {key} {text}".strip()]


def test_another_runs_things_are_not_left_behind_by_this_one() -> None:
    after = {**BEFORE, "rules": {**BEFORE["rules"], "-A DOCKER -d 10.211.9.9/32 -j DNAT": "1"}}
    assert appeared(BEFORE, after, {"10.211.0.5/"}) == []
    assert appeared(BEFORE, after, None) != []


def test_images_may_be_built() -> None:
    assert appeared(BEFORE, {**BEFORE, "images": {"i": "", "new": ""}}, None) == []


@pytest.mark.parametrize(
    "change",
    [
        {"containers": {"c1": "/foreign exited i"}},
        {"containers": {}},
        {"rules": {}},
        {"rules": {"-A FOREIGN -j DROP": "2"}},
        {"images": {}},
    ],
)
def test_whatever_changed_or_vanished_is_disturbed(change: dict[str, dict[str, str]]) -> None:
    assert len(disturbed(BEFORE, {**BEFORE, **change}, None)) == 1


def test_only_what_must_stand_counts_on_a_busy_machine() -> None:
    after = {**BEFORE, "containers": {}, "mounts": {}}
    assert disturbed(BEFORE, after, ["foreign"]) == ["containers: c1, /foreign running i -> gone"]


def test_processes_are_found_by_their_environment_and_by_their_command_line(
    tmp_path: Path,
) -> None:
    program = [sys.executable, "-c", "print(flush=True); input()"]
    marked = {**os.environ, "TMPDIR": str(tmp_path)}

    def started(command: list[str], environment: dict[str, str]) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    with (
        started(program, marked) as by_environment,
        started([*program, str(tmp_path)], dict(os.environ)) as by_command,
        started(program, dict(os.environ)) as stranger,
    ):
        children = (by_environment, by_command, stranger)
        for child in children:
            # The kernel shows a process before it has the words of its command.
            assert child.stdout is not None
            assert child.stdout.readline()
        found = processes(str(tmp_path))
        for child in children:
            child.kill()
    assert [str(child.pid) in found for child in children] == [True, True, False]


def test_a_moment_is_drawn_for_every_step_and_the_same_for_the_same_seed() -> None:
    drawn = [draw(random.Random(seed)) for seed in range(300)]
    assert {moment.step for moment in drawn} == set(STEPS)
    assert all(0 <= moment.delay_s <= STEPS[moment.step][1] for moment in drawn)
    assert drawn == [draw(random.Random(seed)) for seed in range(300)]


def test_a_harness_that_ends_before_the_moment_is_told(tmp_path: Path) -> None:
    assert not await_moment(Moment("deployed", 0.0), tmp_path, lambda _: True)


def test_a_moment_comes_when_the_run_has_written_its_phase(tmp_path: Path) -> None:
    folder = tmp_path / "t" / "r"
    folder.mkdir(parents=True)
    (folder / "lock").touch()
    looks: list[float] = []

    def write_then_live(timeout_s: float) -> bool:
        looks.append(timeout_s)
        (folder / "phases.jsonl").write_text('{"time":1,"phase":"deployed"}\n')
        return False

    assert await_moment(Moment("deployed", 0.25), tmp_path, write_then_live)
    assert looks[-1] == 0.25
