"""Runs of ``splitbrain test`` in containers, each a process of its own, and what they leave."""

import os
import subprocess
import sys
from pathlib import Path

from splitbrain.harness.folder import results
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.docker.names import LOCK_LABEL
from tests.told_processes import ToldProcess

ROOT = Path(__file__).parents[2]


def splitbrain(*words: str) -> list[str]:
    return [sys.executable, "-m", "splitbrain.harness.cli", *words]


def ran(*words: str) -> tuple[int, str, str]:
    """Exit code of a command, its output and its errors."""
    done = subprocess.run(splitbrain(*words), cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def words_of_test(folder: Path, *options: str, seed: int = 7) -> list[str]:
    return ["test", "--seed", str(seed), "--no-analyze", "--runs-folder", str(folder), *options]


def check(folder: Path) -> tuple[int, str]:
    """Exit code and all output of a check of a run."""
    code, output, errors = ran("check", str(folder), "--no-analyze")
    return code, output + errors


def run(folder: Path, *options: str, seed: int = 7) -> tuple[int, results.Results, str]:
    """Exit code, results and all output."""
    code, output, errors = ran(*words_of_test(folder, *options, seed=seed))
    return code, found_in(folder, output + errors), output + errors


def found_in(folder: Path, output: str) -> results.Results:
    """Results of the latest run there."""
    path = RunFolder((folder / "latest").resolve()).results
    assert path.is_file(), output
    return results.read(path)


def verdicts(found: results.Results) -> dict[str, str]:
    return {result.checker: result.verdict.value for result in found.checkers}


class StartedTest(ToldProcess):
    """A run as a process in a session of its own, in this program or in the command's."""

    def __init__(self, folder: Path, *options: str, program: str = "", engine: str = "") -> None:
        self.folder = folder
        command = [sys.executable, program] if program else splitbrain()
        process = subprocess.Popen(
            [*command, *words_of_test(folder, *options)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "DOCKER_HOST": engine} if engine else dict(os.environ),
            start_new_session=True,
        )
        super().__init__(process)

    @property
    def root(self) -> Path:
        return (self.folder / "latest").resolve()

    def results(self) -> results.Results:
        return results.read(RunFolder(self.root).results)


def leftovers(root: Path | str) -> str:
    """Containers, networks and volumes of the run of a folder that are still there.

    They are known by its lock: a run of another test that began in the same second has its id too.
    """
    lock = RunFolder(Path(root).resolve()).lock
    filters = ["--filter", f"label={LOCK_LABEL}={lock}"]
    listings = [
        subprocess.run(
            ["docker", *what, *filters, "-q"], capture_output=True, text=True, check=True
        )
        for what in (("ps", "-a"), ("network", "ls"), ("volume", "ls"))
    ]
    return "".join(listing.stdout for listing in listings)
