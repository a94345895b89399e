"""The archive of Spark's classes, as Java itself takes it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from splitbrain.spark_analysis.class_archive import archive_options, archive_path, make_archive
from splitbrain.spark_analysis.jdk import find_jdk
from tests.spark.run_folders import Shape, World

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

#: In a process of its own, since the session of other tests would be handed out here.
SESSION = """
import json
from splitbrain.spark_analysis.session import spark_session
with spark_session() as session:
    java = session._jvm.java.lang
    machine = java.management.ManagementFactory.getRuntimeMXBean()
    options = list(machine.getInputArguments())
    path = str(java.System.getProperty("java.class.path"))
    print(json.dumps([options, path, session.range(3).count()]))
"""


def session_started(**environment: str) -> tuple[list[str], str, int]:
    """Options of a new session's JVM, its class path, and a count of three rows."""
    ended = subprocess.run(
        [sys.executable, "-P", "-c", SESSION],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    options, class_path, count = json.loads(ended.stdout.splitlines()[-1])
    return options, class_path, count


def test_java_maps_the_archive_that_sessions_name(tmp_path: Path) -> None:
    jdk = find_jdk(os.environ)
    path = archive_path(jdk, os.environ)
    if not path.is_file():
        make_archive(World(Shape(seed=8)).write(tmp_path / "run"), os.environ)
    options, class_path, count = session_started()
    assert count == 3
    named = archive_options(jdk, os.environ)
    assert named
    assert set(named) <= set(options)
    # By itself Java goes on without an archive that does not fit; here it must not.
    java = [str(jdk.home / "bin" / "java"), "-Xshare:on", *named, "-cp", class_path, "-version"]
    ended = subprocess.run(java, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr + ended.stdout


def test_a_session_starts_beside_an_archive_that_is_none(tmp_path: Path) -> None:
    path = archive_path(find_jdk(os.environ), {**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"no archive at all")
    options, _, count = session_started(XDG_CACHE_HOME=str(tmp_path))
    assert f"-XX:SharedArchiveFile={path}" in options
    assert count == 3
