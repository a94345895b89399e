"""Suites of fake runs: writes suite files, carries out nights, here or in a process to kill."""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from splitbrain.harness.campaign.suite.command import SuiteOptions, report, run_suite
from splitbrain.harness.campaign.suite.ledger import Ledger, Line, NightBegan, RunEnded
from tests.awaiting import await_true

ROOT = Path(__file__).parents[5]
#: Without site packages, which the fake does not need and which take most of its time.
FAKE_TOOL = (sys.executable, "-IS", str(Path(__file__).with_name("fake_tool.py")))

#: Carries out a night in a process of its own; the options are those of :class:`Suites`.
_PROGRAM = """
import sys
from pathlib import Path
from tests.unit.harness.campaign.suite.fake_nights import Suites
from tests.awaiting import await_true
sys.exit(Suites(Path(sys.argv[1])).run_here())
"""


def matrix(name: str, **fields: Any) -> str:
    """One matrix in TOML."""
    return "\n".join(["[[matrix]]", f"name = {name!r}", *_lines(fields)])


def program(name: str, *words: str, **fields: Any) -> str:
    """One program in TOML; five seconds at most."""
    given = {"command": list(words), "timeout": 5, **fields}
    return "\n".join(["[[program]]", f"name = {name!r}", *_lines(given)])


def table(name: str, **fields: Any) -> str:
    """One table in TOML."""
    return "\n".join([f"[{name}]", *_lines(fields)])


def does(what: str, **more: str) -> dict[str, str]:
    """The setting that tells the fake tool what to do."""
    return {"does": what, **more}


class Suites:
    """One folder with a suite file, its nights and its ledger."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "suite.toml"
        self.log = folder / "log"
        self.gate = folder / "gate"
        self.ledger = Ledger(folder / "ledger.jsonl")
        self.output = ""

    def write(self, *parts: str, **fields: Any) -> None:
        """Write the suite file."""
        self.file.write_text("\n".join(["name = 'unit'", *_lines(fields), *parts]) + "\n")

    def options(self, **changes: Any) -> SuiteOptions:
        return SuiteOptions(
            **{"runs_folder": self.folder, "tool": FAKE_TOOL, "check": False, **changes}
        )

    def run(self, **changes: Any) -> int:
        """Carry out a night; the exit code."""
        return self._captured(lambda c: run_suite(self.file, self.options(**changes), c))

    def report(self, *, with_file: bool = True) -> int:
        path = self.file if with_file else None
        return self._captured(lambda c: report(path, self.options(), c))

    def run_here(self) -> int:
        """Carry out a night, printing to standard output."""
        return run_suite(self.file, self.options(), Console(soft_wrap=True))

    def process(self) -> "subprocess.Popen[str]":
        """Carry out a night in a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(self.folder)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def lines(self) -> list[Line]:
        return self.ledger.lines()

    def runs(self) -> list[RunEnded]:
        return [line for line in self.lines() if isinstance(line, RunEnded)]

    def nights(self) -> list[NightBegan]:
        return [line for line in self.lines() if isinstance(line, NightBegan)]

    def verdicts(self) -> list[str]:
        """Of all runs, by their place in their night."""
        return [run.verdict for run in sorted(self.runs(), key=lambda run: run.number)]

    def logged(self) -> list[int]:
        """Seeds of the fake runs that came to work, in order."""
        return [int(line) for line in self.log.read_text().split()] if self.log.exists() else []

    def await_logged(self, seed: int) -> None:
        """Wait for a child that works, and for the record of its process, which is the suite's."""

        def is_told() -> bool:
            logged = self.logged()
            # Each child writes its seed, and the suite writes a record of each.
            return seed in logged and len(self.orphans()) >= len(logged)

        await_true(is_told)

    def orphans(self) -> list[Path]:
        """Records of the attempts' processes."""
        return sorted(self.folder.glob("suites/unit/*/runs/*/attempt-*/attempt.json"))

    def _captured(self, action: Any) -> int:
        text = io.StringIO()
        try:
            code: int = action(Console(file=text, soft_wrap=True))
        finally:
            self.output = text.getvalue()
        return code


def _lines(fields: dict[str, Any]) -> list[str]:
    return [f"{name} = {_toml(value)}" for name, value in fields.items()]


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return str(value)
