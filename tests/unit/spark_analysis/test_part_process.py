"""A child that judges parts ends with whoever asked, and what comes of it is a clause."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from splitbrain.spark_analysis.part_process import ChildFailed, PartProcess
from tests.awaiting import await_true

pytestmark = pytest.mark.timeout(120)

#: Tells its process id, then computes for ever.
ENDLESS = """
import os, pathlib, sys
from multiprocessing.connection import Connection
from splitbrain.spark_analysis.part_judging import work

def answer(question, budget):
    pathlib.Path(question).write_text(str(os.getpid()))
    while True:
        pass

work(Connection(int(sys.argv[1])), answer, float(sys.argv[2]), int(sys.argv[3]))
"""


def test_a_child_ends_with_its_owner(tmp_path: Path) -> None:
    (tmp_path / "endless_judge.py").write_text(ENDLESS)
    told = tmp_path / "told"
    asking = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from splitbrain.spark_analysis.part_process import PartProcess\n"
        f"PartProcess('endless_judge', 300.0, 4096).ask({str(told)!r})\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", asking])
    try:
        await_true(lambda: told.exists() and told.read_text() != "", 60)
        child = int(told.read_text())
        assert is_running(child)
    finally:
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    await_true(lambda: not is_running(child), 60)


def test_a_child_that_does_not_start_is_told() -> None:
    process = PartProcess("no_such_module", 1.0, 1024)
    with pytest.raises(
        ChildFailed, match=r"did not start: crashed.*No module named no_such_module"
    ):
        process.ask("anything")
    process.close()


def is_running(process_id: int) -> bool:
    try:
        status = Path(f"/proc/{process_id}/stat").read_text()
    except OSError:
        return False
    # A zombie has ended; whoever adopted it has not looked yet.
    return status.rpartition(")")[2].split()[0] != "Z" and os.getpid() != process_id
