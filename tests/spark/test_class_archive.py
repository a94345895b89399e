"""The archive of Spark's classes, as Java itself takes it."""

import os
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from splitbrain.spark_analysis.class_archive import archive_options, archive_path, make_archive
from splitbrain.spark_analysis.jdk import find_jdk
from splitbrain.spark_analysis.session import spark_session
from tests.spark.run_folders import Shape, World

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def started_with(session: SparkSession) -> tuple[list[str], str]:
    """Options of a session's JVM, and its class path."""
    java = cast("Any", session)._jvm.java.lang
    machine = java.management.ManagementFactory.getRuntimeMXBean()
    return list(machine.getInputArguments()), str(java.System.getProperty("java.class.path"))


def test_java_maps_the_archive_that_sessions_name(tmp_path: Path) -> None:
    jdk = find_jdk(os.environ)
    path = archive_path(jdk, os.environ)
    if not path.is_file():
        make_archive(World(Shape(seed=8)).write(tmp_path / "run"), os.environ)
    with spark_session() as session:
        options, class_path = started_with(session)
    named = archive_options(jdk, os.environ)
    assert named
    assert set(named) <= set(options)
    # By itself Java goes on without an archive that does not fit; here it must not.
    java = [str(jdk.home / "bin" / "java"), "-Xshare:on", *named, "-cp", class_path, "-version"]
    ended = subprocess.run(java, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr + ended.stdout


def test_a_session_starts_beside_an_archive_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = archive_path(find_jdk(os.environ), os.environ)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"no archive at all")
    with spark_session() as session:
        assert f"-XX:SharedArchiveFile={path}" in started_with(session)[0]
        assert session.range(3).count() == 3
