"""Nights of fake runs and steps: writes their files, carries one out, here or to be killed."""

import io
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from splitbrain.harness.campaign.nightly.command import NightlyOptions, run_nightly
from splitbrain.harness.campaign.nightly.steps import Steps
from splitbrain.harness.cli.main import run as splitbrain
from tests.unit.harness.campaign.suite.fake_nights import FAKE_TOOL, ROOT, Suites, does

FAKE_STEPS = str(Path(__file__).with_name("fake_steps.py"))
_PROGRAM = """
import sys
from pathlib import Path
from tests.unit.harness.campaign.nightly.fake_nightly import Nightly
sys.exit(Nightly(Path(sys.argv[1])).run())
"""


def gate_in_process(
    _: Steps, arguments: Sequence[str], _timeout_s: float
) -> tuple[int, str | None]:
    """Stand in for the commands of a night's steps: the gate alone is real, and starts nothing."""
    return (splitbrain([*arguments]) if arguments[0] == "gate" else 0), None


class Nightly:
    """A nightly file over fake runs, and the real commands or fake ones behind it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.suites = Suites(folder)
        self.policy = folder / "gate.toml"
        self.file = folder / "night.toml"
        self.output = ""

    def sets(self, what: str, **more: str) -> dict[str, str]:
        return does(what, log=str(self.suites.log), **more)

    def write(self, **fields: Any) -> None:
        """Write the nightly file and its policy."""
        self.policy.write_text('schema = 1\nrequire = ["violations == 0", "runs_valid >= 2"]\n')
        given = {"suite": "suite.toml", "policy": "gate.toml", "time_budget": "10h", **fields}
        lines = ["schema = 1", *(f"{name} = {value!r}" for name, value in given.items())]
        self.file.write_text("\n".join(lines) + "\n")

    def run(self, *, fake: bool = True, **changes: Any) -> int:
        options: dict[str, Any] = {"runs_folder": self.folder, "tool": FAKE_TOOL, "check": False}
        if fake:
            options["steps_tool"] = (sys.executable, "-IS", FAKE_STEPS, str(self.folder))
        text = io.StringIO()
        try:
            return run_nightly(
                self.file,
                NightlyOptions(**options, **changes),
                Console(file=text, soft_wrap=True),
            )
        finally:
            self.output = text.getvalue()

    def process(self) -> "subprocess.Popen[bytes]":
        """The same in a process of its own, with fake steps."""
        return subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(self.folder)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def steps(self) -> list[str]:
        """Commands that were carried out."""
        log = self.folder / "steps"
        return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []

    def process_of(self, command: str) -> int:
        """Number of the process that carried out a step last."""
        return int((self.folder / f"{command}.pid").read_text())

    def ends_with(self, command: str, code: int) -> None:
        (self.folder / f"{command}.code").write_text(str(code))

    def takes(self, command: str, seconds: float) -> None:
        (self.folder / f"{command}.takes").write_text(str(seconds))

    def folders(self) -> list[Path]:
        return sorted((self.folder / "nightly" / "unit").glob("*/"))

    def gates(self) -> list[Path]:
        """Answers of the gate, the oldest night's first."""
        return [folder / "gate.json" for folder in self.folders()]
