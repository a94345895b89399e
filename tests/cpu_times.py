"""Processor seconds of each test file and of the dearest tests: ``pytest -p tests.cpu_times -n 0``.

Counts the test process and all that it starts, detached processes too: they share a control group
of their own, which takes a root's rights. Containers belong to their engine and are not counted.
"""

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

DEAREST = 25


def make_group() -> Path:
    """A control group that holds this process and whatever it starts."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    root = next(Path(words[1]) for words in mounts if words[2] == "cgroup2")
    group = root / f"splitbrain-tests-{os.getpid()}"
    group.mkdir()
    (group / "cgroup.procs").write_text(str(os.getpid()))
    return group


class CpuTimes:
    """Figures of one pytest process."""

    def __init__(self) -> None:
        self.group = make_group()
        self.spent_s: defaultdict[str, float] = defaultdict(float)

    def used_s(self) -> float:
        stat = dict(line.split() for line in (self.group / "cpu.stat").read_text().splitlines())
        return int(stat["usage_usec"]) / 1e6

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before = self.used_s()
        try:
            return (yield)
        finally:
            self.spent_s[item.nodeid] += self.used_s() - before

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        files: defaultdict[str, float] = defaultdict(float)
        for test, seconds in self.spent_s.items():
            files[test.partition("::")[0]] += seconds
        write = terminalreporter.write_line
        write(
            f"processor seconds: {sum(self.spent_s.values()):.1f}, collecting and ending left out"
        )
        for title, spent in (("files", files), ("tests", self.spent_s)):
            write(f"dearest {title}")
            for name in sorted(spent, key=spent.__getitem__, reverse=True)[:DEAREST]:
                write(f"{spent[name]:8.1f} {name}")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(CpuTimes(), "cpu-times-of-tests")
