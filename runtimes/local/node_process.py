"""One node's processes, as the host above them sees them: start, kill, freeze, measure.

A node is its keeper's descendants, whatever process groups they make. Blocking; calls for one node
come one at a time. Must never signal anything that is not below the keeper.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from splitbrain.contracts.runtime import NodeStatus
from splitbrain.runtimes.local.control import PlannedNode
from splitbrain.runtimes.local.process_table import ENDED, STOPPED, Process, descendants, process
from splitbrain.runtimes.system_programs import CannotError
from splitbrain.runtimes.waiting import await_true
from splitbrain.runtimes.wall_clocks import HEAD_BYTES

_PATIENCE_S: Final = 30.0
_INTERVAL_S: Final = 0.002
_KEEPER: Final = f"{__package__}.keeper"


class Surroundings(NamedTuple):
    """The namespaces that a node starts in."""

    #: Descriptor of its network namespace.
    network: int
    #: File that it sees as ``/etc/hosts``.
    hosts: Path


class NodeProcess:
    """One node; not running at first. Without surroundings it is a plain process.

    The starter is a single thread that lives as long as the host: the kernel takes the thread that
    started a process for its parent.
    """

    def __init__(
        self, plan: PlannedNode, surroundings: Surroundings | None, starter: Executor
    ) -> None:
        self._plan = plan
        self._surroundings = surroundings
        self._starter = starter
        self._keeper: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the program; nothing where it runs."""
        if self.status() in {"running", "paused"}:
            return
        self._keeper = self._starter.submit(self._start).result()

    def _start(self) -> subprocess.Popen[bytes]:
        plan, around = self._plan, self._surroundings
        command = [sys.executable, "-S", "-P", "-m", _KEEPER]
        groups = "\n".join(plan.groups) or "-"
        places = ("-", "-") if around is None else map(str, reversed(around))
        reading, writing = os.pipe()
        with open(reading, "rb") as report:  # noqa: PTH123 - a descriptor, no path
            try:
                with Path(plan.output).open("ab") as output:
                    keeper = subprocess.Popen(
                        [*command, str(writing), groups, plan.name, *places, *plan.command],
                        cwd=plan.folder,
                        env={**os.environ, **plan.environment},
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        pass_fds=(writing, *(() if around is None else (around.network,))),
                    )
            except OSError as error:
                raise CannotError(f"{error.filename}: {error.strerror}") from error
            finally:
                os.close(writing)
            problem = report.read().decode(errors="replace").strip()
        if problem:
            keeper.wait()
            raise CannotError(problem)
        return keeper

    def kill(self) -> None:
        """SIGKILL for every process of the node; returns when all are gone."""
        keeper = self._keeper
        if keeper is None:
            return

        def gone() -> bool:
            self._signal_all(signal.SIGKILL, lambda _: True)
            return keeper.poll() is not None

        _await(gone, "it does not die")

    def pause(self) -> None:
        """Stop every process of the node; returns when all are seen stopped."""
        _await(
            lambda: self._signal_all(signal.SIGSTOP, lambda member: member.state not in STOPPED),
            "it cannot be stopped",
        )

    def resume(self) -> None:
        """Let every process of the node go on; nothing where none is stopped."""
        _await(
            lambda: self._signal_all(signal.SIGCONT, lambda member: member.state in STOPPED),
            "it stays stopped",
        )

    def _signal_all(self, number: int, is_due: Callable[[Process], bool]) -> bool:
        """Send a signal to the processes that are due for it; whether there was none."""
        due = [member for member in self._members() if is_due(member)]
        for member in due:
            with suppress(ProcessLookupError):
                os.kill(member.number, number)
        return not due

    def status(self) -> NodeStatus:
        """Return the state of the node's processes."""
        if self._keeper is None:
            return "missing"
        if self._keeper.poll() is not None:
            return "exited"
        members = self._members()
        if members and all(member.state in STOPPED for member in members):
            return "paused"
        return "running"

    def signal(self, number: int) -> None:
        """Send a signal to the node's first process, as an operator does."""
        for member in self._members()[:1]:
            with suppress(ProcessLookupError):
                os.kill(member.number, number)

    def exit_code(self) -> int | None:
        """Exit code of the last life, None while it runs."""
        return None if self._keeper is None else self._keeper.poll()

    def numbers(self) -> list[int]:
        """Its processes, by number."""
        return [member.number for member in self._members()]

    def program(self, library: str) -> tuple[bool, bytes] | None:
        """Whether its first process has loaded the library, and its file's first bytes."""
        for member in self._members()[:1]:
            folder = Path("/proc") / str(member.number)
            with suppress(OSError), (folder / "exe").open("rb") as file:
                return library in (folder / "maps").read_text(), file.read(HEAD_BYTES)
        return None

    def use(self) -> tuple[float, int] | None:
        """CPU seconds since the start and bytes in RAM, None while it does not run."""
        members = self._members()
        if not members:
            return None
        cpu_seconds = sum(member.cpu_seconds for member in members)
        return cpu_seconds, sum(member.memory_bytes for member in members)

    def end(self) -> None:
        """End the node for good; it can be called at any time."""
        with suppress(CannotError):
            self.kill()

    def _members(self) -> list[Process]:
        if self._keeper is None or self._keeper.poll() is not None:
            return []
        found = (process(number) for number in descendants(self._keeper.pid))
        return [each for each in found if each is not None and each.state not in ENDED]


def _await(condition: Callable[[], bool], problem: str) -> None:
    if not await_true(condition, _PATIENCE_S, _INTERVAL_S):
        raise CannotError(f"{problem}, although it was told to for {_PATIENCE_S:g} s")
