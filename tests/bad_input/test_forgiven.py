"""Odd surroundings that are no reason to fail: the command does its work and keeps its exit code.

Each runs the program as a process of its own, because what is odd is the process' surroundings.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Each starts the program anew, which takes seconds on a busy machine.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
STALE = (
    '{"process": 0, "type": "invoke", "f": "write", "value": 1}\n'
    '{"process": 0, "type": "ok", "f": "write", "value": 1}\n'
    '{"process": 1, "type": "invoke", "f": "read", "value": null}\n'
    '{"process": 1, "type": "ok", "f": "read", "value": 2}\n'
)


def shell(
    folder: Path, line: str, environment: dict[str, str] | None = None, drop: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a shell line in which ``splitbrain`` is the program under test."""
    program = (
        f'splitbrain() {{ "{sys.executable}" -m splitbrain.harness.cli "$@"; }}; set -o pipefail; '
    )
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
    return subprocess.run(
        ["bash", "-c", program + line],
        cwd=folder,
        env={name: value for name, value in variables.items() if name not in drop},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=100,
    )


@pytest.mark.parametrize(
    "line",
    [
        # The reader is gone before a word is written.
        "splitbrain systems | true",
        "splitbrain systems --json | true",
        "splitbrain systems >&-",
        "splitbrain systems --json >&-",
        "splitbrain systems <&- ",
        "splitbrain systems 2>&-",
        "splitbrain systems <&- >&- 2>&-",
    ],
)
def test_closed_and_broken_streams(tmp_path: Path, line: str) -> None:
    done = shell(tmp_path, line)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_verdict_outlives_its_reader(tmp_path: Path) -> None:
    (tmp_path / "stale.jsonl").write_text(STALE)
    done = shell(tmp_path, "splitbrain check stale.jsonl | true")
    assert (done.returncode, done.stderr) == (1, "")


def test_no_file_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    (tmp_path / "stale.jsonl").write_text(STALE)
    done = shell(tmp_path, "splitbrain check stale.jsonl >&-")
    assert (done.returncode, done.stderr) == (1, "")
    assert (tmp_path / "stale.jsonl").read_text() == STALE


def test_output_to_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    done = shell(tmp_path, "splitbrain systems > /dev/full")
    assert done.returncode == 3
    assert done.stderr == (
        "splitbrain: could not use a file: No space left on device. "
        "Make room or choose another place, and try again\n"
    )


@pytest.mark.parametrize(
    ("environment", "drop"),
    [
        ({"PYTHONIOENCODING": "ascii"}, ()),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, ()),
        ({"COLUMNS": "3"}, ()),
        ({"TERM": "dumb"}, ()),
        ({"TMPDIR": "/nowhere/at/all"}, ()),
        ({}, ("HOME",)),
    ],
    ids=["ascii", "locale-c", "narrow", "dumb", "no-tmpdir", "no-home"],
)
def test_poor_surroundings(
    tmp_path: Path, environment: dict[str, str], drop: tuple[str, ...]
) -> None:
    done = shell(
        tmp_path, "splitbrain systems && splitbrain test --system kräft", environment, drop
    )
    assert done.returncode == 64
    assert done.stdout
    assert done.stderr.startswith("splitbrain: there is no system called 'kr")
    assert done.stderr.count("\n") == 1
