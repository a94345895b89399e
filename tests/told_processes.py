"""A process whose lines are read as they come."""

import subprocess
from typing import Self


class ToldProcess:
    """A process that was started with its output in one pipe, as text."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said = ""

    def until(self, *texts: str) -> Self:
        """Read up to a line in which all of these stand."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            if all(text in line for text in texts):
                return self
        raise AssertionError(f"{texts} were not said:\n{self.said}")

    def end(self) -> tuple[int, str]:
        """Wait for its end: exit code, and all that it said."""
        assert self.process.stdout is not None
        self.said += self.process.stdout.read()
        self.process.stdout.close()
        return self.process.wait(), self.said
