"""``python -m splitbrain.spark_analysis`` as the harness starts it: output, exit codes, Javas."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tenacity import Retrying, stop_after_delay, wait_fixed

from splitbrain.history.run_folder import RunFolder
from tests.spark.run_folders import Shape, World

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

PROJECT = Path(__file__).parents[2]


def start(*arguments: object, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "splitbrain.spark_analysis", *map(str, arguments)],
        cwd=PROJECT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_missing_folder_ends_with_3_and_one_sentence(tmp_path: Path) -> None:
    child = start(tmp_path / "gone")
    output, errors = child.communicate(timeout=100)
    assert (child.returncode, output) == (3, "")
    assert "there is no such folder" in errors
    assert len(errors.splitlines()) == 1


def test_java_that_cannot_start_ends_with_3_and_one_sentence(tmp_path: Path) -> None:
    folder = World(Shape(seed=42, seconds=1.0, faults=0)).write(tmp_path / "run")
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        '#!/bin/sh\ncase "$*" in\n'
        f"*-XshowSettings*) echo '  java.home = {tmp_path}/jdk'\n"
        "  echo '  java.specification.version = 17';;\n"
        "*) echo 'Error: out of cheese' >&2; exit 1;;\nesac\n"
    )
    java.chmod(0o755)
    child = start(folder, JAVA_HOME=str(tmp_path / "jdk"))
    output, errors = child.communicate(timeout=100)
    assert (child.returncode, output) == (3, "")
    assert "could not start Spark" in errors
    assert "out of cheese" in errors
    assert len(errors.splitlines()) == 1


def test_wrong_call_ends_with_64() -> None:
    child = start()
    _, errors = child.communicate(timeout=100)
    assert child.returncode == 64
    assert errors.startswith("usage: ")


def test_terminated_analysis_leaves_no_process_no_file_and_listened_on_loopback_only(
    tmp_path: Path,
) -> None:
    folder = World(Shape(seed=43, seconds=3.0, faults=1)).write(tmp_path / "run")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    child = start(folder, TMPDIR=str(scratch))
    try:
        java, listening = listeners_of_java(child)
        child.send_signal(signal.SIGTERM)
        _, errors = child.communicate(timeout=100)
    finally:
        child.kill()

    assert all(address.startswith("127.") for address in listening)
    assert child.returncode == 128 + signal.SIGTERM, errors
    await_end(java)
    assert list(scratch.iterdir()) == []
    assert not RunFolder(folder).analysis_summary.exists()


def listeners_of_java(child: subprocess.Popen[str]) -> tuple[int, set[str]]:
    """The JVM of an analysis and what it listens on, once that is both of its two sockets."""
    for attempt in Retrying(wait=wait_fixed(0.1), stop=stop_after_delay(300)):
        with attempt:
            java = java_of(child.pid)
            assert java is not None
            listening = listening_addresses(java)
            # pyspark's gateway and Spark's block manager.
            assert len(listening) >= 2
            return java, listening
    raise AssertionError


def await_end(process: int) -> None:
    for attempt in Retrying(wait=wait_fixed(0.1), stop=stop_after_delay(60)):
        with attempt:
            assert not Path(f"/proc/{process}").exists()


def java_of(parent: int) -> int | None:
    """The Java process among the children of a process; the launching shell becomes it by exec."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                status = (entry / "stat").read_text()
                name, _, rest = status.partition("(")[2].rpartition(")")
            except OSError:
                continue
            if name == "java" and int(rest.split()[1]) == parent:
                return int(entry.name)
    return None


def listening_addresses(process: int) -> set[str]:
    """Local addresses and ports that a process listens on; none where it has just ended."""
    root = Path(f"/proc/{process}")
    try:
        sockets = {str(descriptor.readlink()) for descriptor in list((root / "fd").iterdir())}
        tables = [(root / "net" / name).read_text().splitlines() for name in ("tcp", "tcp6")]
    except OSError:
        return set()
    found: set[str] = set()
    for fields in (line.split() for table in tables for line in table[1:]):
        # State 0A is LISTEN.
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
            found.add(address_text(fields[1]))
    return found


def address_text(field: str) -> str:
    """``0100007F:1F90`` as ``127.0.0.1:8080``; IPv6 only as far as mapped IPv4 addresses go."""
    address, port = field.split(":")
    words = [address[place : place + 8] for place in range(0, len(address), 8)]
    last = ".".join(str(int(words[-1][place : place + 2], 16)) for place in (6, 4, 2, 0))
    mapped = len(words) == 1 or words[:3] == ["00000000", "00000000", "FFFF0000"]
    prefix = "" if mapped else "not-mapped-"
    return f"{prefix}{last}:{int(port, 16)}"
