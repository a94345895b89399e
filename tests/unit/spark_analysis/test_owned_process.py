"""A process of Spark's ends with its owner, however early that dies and whoever it gave way to."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from splitbrain.harness.pool.spark_child import OWNED, end_spark, set_niceness
from tests.awaiting import await_true

#: Its import never ends; it tells at its end how it is scheduled.
_HANGS_IN_ITS_IMPORT = """
import os, pathlib, sys, threading
here = pathlib.Path(__file__)
def told():
    group = pathlib.Path("/proc/self/autogroup")
    lines = [str(os.getpriority(os.PRIO_PROCESS, 0)), *sys.argv[1:]]
    lines += [group.read_text().split()[-1]] if group.exists() else []
    here.with_name("ended").write_text("\\n".join(lines))
try:
    here.with_name("begun").touch()
    threading.Event().wait()
finally:
    told()
"""


@contextmanager
def _owned(folder: Path) -> Iterator["tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]"]:
    """A process that hangs in an import, and its owner; both end with the block."""
    (folder / "hanging.py").write_text(_HANGS_IN_ITS_IMPORT)
    (folder / "run_it.py").write_text("import hanging\n")
    owner = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", OWNED, "run_it", "a folder", "4", str(owner.pid)],
        env={**os.environ, "PYTHONPATH": str(folder)},
        start_new_session=True,
    )
    with owner, process:
        try:
            await_true((folder / "begun").exists, 60)
            yield owner, process
        finally:
            owner.kill()
            process.kill()


def test_an_owner_is_watched_while_the_module_is_imported(tmp_path: Path) -> None:
    with _owned(tmp_path) as (owner, process):
        owner.kill()
        assert process.wait(60) == 128 + signal.SIGTERM
    assert (tmp_path / "ended").read_text().splitlines()[1:3] == ["a folder", "4"]


@pytest.mark.parametrize("ends_by", ["its owner's death", "its owner's will"])
def test_a_process_that_gave_way_to_all_does_not_to_its_end(ends_by: str, tmp_path: Path) -> None:
    with _owned(tmp_path) as (owner, process):
        set_niceness(process, 19)
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == 19
        if ends_by == "its owner's will":
            end_spark(process)
        owner.kill()
        process.wait(60)
    niceness, _, _, *of_the_group = (tmp_path / "ended").read_text().splitlines()
    # A user may not take niceness back.
    expected = "0" if os.geteuid() == 0 else "19"
    assert niceness == expected
    assert of_the_group in ([], [expected])
