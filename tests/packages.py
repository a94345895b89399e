"""The project's wheel, and packages of others as an installer lays them down."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from splitbrain.runtimes.docker.images import ROOT


def build_wheel(folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def offer(folder: Path, package: str, **offers: Mapping[str, str]) -> None:
    """Write what a folder of the path says of a package: by sort, names and what they stand for."""
    information = folder / f"{package}-1.dist-info"
    information.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n"
    (information / "METADATA").write_text(metadata)
    lines: list[str] = []
    for sort, things in offers.items():
        lines += [f"[splitbrain.{sort}]", *(f"{name} = {of}" for name, of in things.items())]
    (information / "entry_points.txt").write_text("\n".join([*lines, ""]))
