"""Runs of ``splitbrain test`` in containers, each a process of its own, and what they leave."""

import subprocess
import sys
from pathlib import Path

from splitbrain.harness.folder import results
from splitbrain.history.run_folder import RunFolder

ROOT = Path(__file__).parents[2]


def command(folder: Path, *options: str) -> list[str]:
    return [
        *(sys.executable, "-m", "splitbrain.harness.cli", "test", "--seed", "7"),
        *("--no-analyze", "--runs-folder", str(folder), *options),
    ]


def run(folder: Path, *options: str) -> tuple[int, results.Results, str]:
    """Exit code, results and all output."""
    done = subprocess.run(
        command(folder, *options), cwd=ROOT, capture_output=True, text=True, check=False
    )
    path = RunFolder((folder / "latest").resolve()).results
    assert path.is_file(), done.stdout + done.stderr
    return done.returncode, results.read(path), done.stdout + done.stderr


def verdicts(found: results.Results) -> dict[str, str]:
    return {result.checker: result.verdict.value for result in found.checkers}


def leftovers(run_id: str) -> str:
    """Containers, networks and volumes of a run that are still there."""
    filters = ["--filter", f"label=splitbrain.run={run_id}"]
    listings = [
        subprocess.run(
            ["docker", *what, *filters, "-q"], capture_output=True, text=True, check=True
        )
        for what in (("ps", "-a"), ("network", "ls"), ("volume", "ls"))
    ]
    return "".join(listing.stdout for listing in listings)
