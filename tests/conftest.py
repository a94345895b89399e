"""Plugins of every test: order of the tiers, where time goes, planted bugs, Hypothesis runs alike.

``pytester`` is for tests of our own plugin.

It holds no fixture of any room; those live next to the tests that use them.
"""

import os
import signal
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling, Scheduling

from tests.planted import pytest_pyfunc_call  # noqa: F401 - a hook: planted bugs

pytest_plugins = ["pytester"]

#: Tiers that need something started, dearest last; what bears no such marker comes first.
TIERS = ("slow", "containers", "spark", "browser")
_SPARK = "tests/spark/"
_PROCESSOR_S = pytest.StashKey[float]()

# Deadlines measure the machine's load here, not the code; a failure prints its reproducer.
settings.register_profile(
    "gate",
    deadline=None,
    derandomize=True,
    max_examples=50,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("search", deadline=None, print_blob=True, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))

# A shell's background jobs ignore Ctrl-C, and so would all that tests start and then
# interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A developer's shell may forbid it, and then no command that a test starts could show that it
# leaves bytecode beside a user's file.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


class FileScheduling(LoadFileScheduling):
    """A file stays with one worker, and so do all files that share a Spark session.

    A session costs half a minute of processor time until its code is compiled, in each worker anew.
    """

    def _split_scope(self, nodeid: str) -> str:
        return _SPARK if nodeid.startswith(_SPARK) else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """Of ``--dist loadfile`` alone; None: xdist's own."""
    return FileScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--list-deselected", type=Path, help="add the files of deselected tests to this"
    )
    parser.addoption(
        "--first", default="", help="files or folders whose tests come first, by commas"
    )
    parser.addoption(
        "--longest-files", type=int, default=0, help="print so many files with their seconds"
    )


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Of several workers, each of which collects everything, the first writes the list."""
    config = items[0].config
    path: Path | None = config.getoption("--list-deselected")
    if path is not None and os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0":
        files = sorted({str(item.path.relative_to(config.rootpath)) for item in items})
        with path.open("a") as listed:
            listed.writelines(f"{file}\n" for file in files)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Where the time went: seconds by file, whichever worker ran its tests.

    Seconds of the processor are those of the worker and of the processes that it waited for; what
    containers take is not among them.
    """
    count: int | None = terminalreporter.config.getoption("--longest-files")
    seconds: defaultdict[str, float] = defaultdict(float)
    processor: defaultdict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                file = report.nodeid.partition("::")[0]
                seconds[file] += report.duration
                processor[file] += getattr(report, "processor_s", 0.0)
    if count:
        terminalreporter.write_line(
            f"where {sum(seconds.values()):.0f} s of tests went,"
            f" {sum(processor.values()):.0f} s of the processor among them:"
        )
    for file in sorted(seconds, key=seconds.__getitem__, reverse=True)[:count]:
        terminalreporter.write_line(f"{seconds[file]:8.1f} {processor[file]:8.1f} {file}")


def _processor_s() -> float:
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    item.stash[_PROCESSOR_S] = _processor_s()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to each phase's report the processor's seconds since the phase before."""
    report = yield
    now = _processor_s()
    # xdist hands a report's attributes on to the process that prints.
    report.__dict__["processor_s"] = now - item.stash[_PROCESSOR_S]
    item.stash[_PROCESSOR_S] = now
    return report


def tier(item: pytest.Item) -> int:
    """Position of a test's dearest marker in the order of running."""
    ranks = [TIERS.index(mark.name) for mark in item.iter_markers() if mark.name in TIERS]
    return max(ranks, default=-1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Cheap tests first: a broken rule is known before a container starts.

    Where files are dealt to workers one after the other, the longest come first instead, so that no
    worker begins one when the others are through.
    """
    given: str = config.getoption("--first") or ""
    first = [place for place in given.split(",") if place]

    def place(item: pytest.Item) -> int:
        matches = (n for n, path in enumerate(first) if item.nodeid.startswith(path))
        return next(matches, len(first))

    items.sort(key=lambda item: (place(item), tier(item)))
