"""The project's wheel, and packages of others as an installer lays them down."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from splitbrain.runtimes.docker.images import ROOT
from splitbrain.systems.registry import GROUP


def build_wheel(folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def offer_systems(folder: Path, package: str, systems: Mapping[str, str]) -> None:
    """Write what a folder of the path says of a package that offers these systems."""
    information = folder / f"{package}-1.dist-info"
    information.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n"
    (information / "METADATA").write_text(metadata)
    lines = [f"{name} = {of}" for name, of in systems.items()]
    (information / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines, ""]))
