"""The page on a system of one's own is true: its package is found, run, judged and replayed."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from splitbrain.runtimes.docker.images import ROOT
from splitbrain.systems.registry import GROUP
from tests.packages import offer_systems

PAGE = (ROOT / "docs" / "your-system.md").read_text()

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's package, as an installer lays it down."""
    folder = tmp_path_factory.mktemp("packages")
    (module,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (offer,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (folder / "shelf.py").write_text(module)
    offer_systems(folder, "shelf", tomllib.loads(offer)["project"]["entry-points"][GROUP])
    return folder


def splitbrain(packages: Path, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "splitbrain.harness.cli", *words],
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(packages), "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )


def run(packages: Path, folder: Path, nemesis: str, *more: str) -> tuple[int, str]:
    (command,) = re.findall(
        rf"^splitbrain (test .* --nemesis {nemesis}:n1 .*)$", PAGE, re.MULTILINE
    )
    done = splitbrain(packages, folder, *command.split(), "--seed", "3", "--no-analyze", *more)
    return done.returncode, done.stdout


def test_the_page_has_it_valid_while_it_is_paused_also_in_worker_processes(
    packages: Path, tmp_path: Path
) -> None:
    code, said = run(packages, tmp_path, "pause")
    assert code == 0, said
    code, said = run(packages, tmp_path, "pause", "--rate", "3000", "--concurrency", "40")
    assert code == 0, said


def test_the_page_has_it_invalid_once_it_is_killed_also_without_its_package(
    packages: Path, tmp_path: Path
) -> None:
    code, said = run(packages, tmp_path, "kill")
    assert code == 1, said
    assert "Reproduce   splitbrain test --system shelf" in said
    replayed = splitbrain(packages, tmp_path, "replay", "runs/latest", "--no-analyze")
    assert replayed.returncode == 1, replayed.stdout
    # A run folder is judged wherever it is carried, also where nobody has the package.
    again = splitbrain(tmp_path, tmp_path, "check", "runs/latest", "--no-analyze")
    assert again.returncode == 1, again.stdout
    refused = splitbrain(tmp_path, tmp_path, "replay", "runs/latest")
    assert refused.returncode == 64, refused.stdout
    assert "there is no system called 'shelf'" in refused.stdout


def test_it_is_listed_as_ours_are(packages: Path, tmp_path: Path) -> None:
    listed = splitbrain(packages, tmp_path, "systems")
    assert listed.returncode == 0, listed.stdout
    assert re.search(r"^shelf\s*$.*?nodes\s+1\s", listed.stdout, re.MULTILINE | re.DOTALL)
