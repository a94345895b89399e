"""A copied worker does what a fresh one does, and can be killed like one."""

import os
import subprocess
import sys
from pathlib import Path

#: Asserted in a process of its own: a test's has the threads of its libraries.
PROGRAM = """
import os, sys, time
from splitbrain.harness.pool.limits import Limits
from splitbrain.harness.pool.workers import Part, run_parts, warm_worker

LIMITS = Limits(time_budget_s=1.0, memory_budget_mib=512, jobs=1)

def pid(payload, budget): return os.getpid(), payload
def hang(payload, budget): time.sleep(600)
def die(payload, budget): os.kill(os.getpid(), 11)
def say(payload, budget): print("no frame"); return os.getppid()

def warm(): return [c for c in (warm_worker(LIMITS, lambda: None),) if c is not None]

def run(*names, payload=None):
    parts = [Part(f"__main__:{n}", payload) for n in names]
    children = warm()
    assert len(children) == 1, "it was not copied"
    copy = children[0].process_id
    outcomes = run_parts(parts, LIMITS, warm=children)
    assert not children
    return copy, outcomes

copy, (one, two) = run("pid", "pid", payload=b"x" * 5_000_000)
assert one.value == (copy, b"x" * 5_000_000), one.failure
assert two.value[0] == copy
_, (one,) = run("hang")
assert one.failure == "time budget of 1 s used up, stopped", one
_, (one,) = run("die")
assert one.failure == "crashed: its worker was ended by signal 11", one
_, (one,) = run("say")
assert one.value == os.getpid(), one
unused = warm()[0]
unused.close()
unused.close()
assert not unused.is_alive
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no child is left")
"""


def test_a_copied_worker_works_and_ends_like_a_fresh_one(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])},
    )
    assert done.stdout == "no child is left\n", done.stderr


def test_a_process_with_threads_is_not_copied() -> None:
    import threading

    from splitbrain.harness.pool.forked_process import can_fork

    release = threading.Event()
    other = threading.Thread(target=release.wait)
    other.start()
    try:
        assert not can_fork()
    finally:
        release.set()
        other.join()
