"""A machine that denies namespaces, made by limits inside a user namespace of the test's own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def in_a_user_namespace(limit: str, *command: str) -> str:
    """Output of a program where no more namespaces of one kind may be made."""
    script = f'echo 0 > /proc/sys/user/max_{limit}_namespaces; exec "$@"'
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", script, "sh", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    return done.stdout


def test_denied_namespaces_are_found_by_trying_and_named() -> None:
    said = in_a_user_namespace(
        "net", sys.executable, "-m", "splitbrain.runtimes.local.host", "trial"
    )
    assert "max_*_namespaces" in json.loads(said)["problem"]


DEPLOYS = """
import sys
from pathlib import Path
from splitbrain.runtimes.local.runtime import LocalRuntime
from tests.runtimes.node_programs import N2, NAMES, await_serving, specification

runtime = LocalRuntime()
runtime.deploy(specification(runtime, Path(sys.argv[1])))
try:
    await_serving(runtime)
    runtime.kill(N2)
    print(runtime.mode.way, *(runtime.status(name) for name in NAMES))
    # Whether this user may have control groups is another matter.
    print(sorted(runtime.capabilities() - {"cpu", "memory"}), runtime.versions()["limits"])
finally:
    runtime.teardown()
"""


def test_a_cluster_runs_as_plain_processes_where_namespaces_are_denied(tmp_path: Path) -> None:
    said = in_a_user_namespace("net", sys.executable, "-c", DEPLOYS, str(tmp_path))
    first, second = said.splitlines()
    assert first == "processes running exited running"
    able = ["file-change", "kill", "pause", "power", "terminate", "truncate", "wipe"]
    assert second == f"{able} plain processes, no partitions were possible"
