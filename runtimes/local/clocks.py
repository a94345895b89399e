"""Wrong wall clocks of nodes on this machine: libfaketime from where the machine has it.

Only nodes with namespaces have them: the library keeps a piece of shared memory by process number,
which plain processes would leave behind, and nodes with numbers of their own would share. A clock
is a file in the node's folder; a drift is made by a thread that rewrites it, so it does not depend
on when a program was started, nor changes how long its timeouts are.
"""

import functools
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from splitbrain.contracts.arms import ClockWarp
from splitbrain.contracts.errors import CapabilityError, HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import NodeSpec
from splitbrain.runtimes import wall_clocks
from splitbrain.runtimes.lacking import LackingClocks, refuse_timeless
from splitbrain.runtimes.local.mode import Mode

_FILE: Final = "clock"
_TICK_S: Final = 0.01
_READING_PATIENCE_S: Final = 30.0


@functools.cache
def clock_library() -> Path | None:
    """Where this machine has libfaketime, None where it has none."""
    for folder in ("/usr/lib", "/usr/lib64", "/lib", "/usr/local/lib"):
        for pattern in (f"faketime/{wall_clocks.LIBRARY}", f"*/faketime/{wall_clocks.LIBRARY}"):
            for found in sorted(Path(folder).glob(pattern)):
                return found
    return None


def clocks_of(
    mode: Mode, folder: Callable[[NodeName], Path], ask: Callable[..., Any]
) -> "LocalClocks | LackingClocks":
    """Return the clocks of a runtime's nodes, or what refuses them with the reason."""
    library = clock_library()
    if mode.way == "processes":
        problem = f"a node has a clock of its own only in namespaces ({mode.text()})"
        return LackingClocks("local", "Leave this fault out of the plan", problem)
    if library is None:
        next_step = "Install libfaketime (Debian: apt-get install libfaketime)"
        problem = "this machine has no libfaketime to give a node a clock of its own"
        return LackingClocks("local", next_step, problem)
    return LocalClocks(folder, ask, library)


class LocalClocks:
    """Implements :class:`contracts.arms.ClockArm` for nodes with namespaces.

    ``folder`` and ``ask`` raise HarnessError for a node that is not deployed.
    """

    def __init__(
        self, folder: Callable[[NodeName], Path], ask: Callable[..., Any], library: Path
    ) -> None:
        self._folder = folder
        self._ask = ask
        self._library = library
        self._tickers: dict[NodeName, _Ticker] = {}
        self._clocked: set[NodeName] = set()

    def equip(self, node: NodeSpec) -> NodeSpec:
        """Return the node with a program that reads its own clock."""
        file = self._folder(node.name) / _FILE
        wall_clocks.write_clock(file, wall_clocks.TRUE_TIME)
        self._clocked.add(node.name)
        preload = self._environment(file, node.environment)
        assignments = (f"{name}={value}" for name, value in preload.items())
        # Only the program: what stands above it keeps the true time.
        return msgspec.structs.replace(node, command=("env", *assignments, *node.command))

    def check_all(self) -> None:
        """Check the programs of all nodes, after the deployment."""
        for node in sorted(self._clocked):
            self.check(node)

    def check(self, node: NodeName) -> None:
        """Raise CapabilityError for a running program that goes by the true time; says why."""

        def why_timeless() -> str | None:
            seen = self._ask(f"look at the program of {node}", node, "program", wall_clocks.LIBRARY)
            return seen and wall_clocks.why_no_clock(bytes(seen[1]), bool(seen[0]))

        refuse_timeless(node, "local", why_timeless)

    def warp(self, node: NodeName, warp: ClockWarp) -> None:
        """Have the node's clock go so from now on."""
        file = self._file(f"set wrong the clock of {node}", node)
        self.check(node)
        self._stop(node)
        self._write(node, file, wall_clocks.offset_line(warp.offset_us))
        if warp.drift_ppm:
            self._tickers[node] = _Ticker(file, warp)

    def unwarp(self, node: NodeName) -> None:
        """Let the node have the true time."""
        file = self._file(f"set right the clock of {node}", node)
        self._stop(node)
        self._write(node, file, wall_clocks.TRUE_TIME)

    def offset_ms(self, node: NodeName) -> int:
        """How far ahead the clock is, read by the node's means beside the true one."""
        file = self._file(f"read the clock of {node}", node)
        environment = {**os.environ, **self._environment(file, os.environ)}
        shell = shutil.which("sh") or "/bin/sh"
        try:
            done = subprocess.run(
                [shell, "-c", wall_clocks.READING],
                env=environment,
                capture_output=True,
                check=False,
                timeout=_READING_PATIENCE_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _unreadable(node, str(error)) from error
        offset = wall_clocks.offset_of_reading(done.stdout.decode(errors="replace"))
        if offset is None:
            problem = done.stderr.decode(errors="replace").strip().replace("\n", " | ")
            raise _unreadable(node, problem or "the date program printed no numbers")
        return offset

    def heal_all(self) -> None:
        """Let all nodes have the true time."""
        for node in sorted(self._clocked):
            self.unwarp(node)

    def forget(self) -> None:
        """Note that the nodes are gone: write nothing more. Safe to call twice."""
        for node in sorted(self._clocked):
            self._stop(node)
        self._clocked.clear()

    def _environment(self, file: Path, own: Any) -> dict[str, str]:
        return wall_clocks.clock_environment(str(self._library), str(file), own)

    def _stop(self, node: NodeName) -> None:
        ticker = self._tickers.pop(node, None)
        if ticker is not None:
            ticker.stop()

    def _write(self, node: NodeName, file: Path, content: str) -> None:
        try:
            wall_clocks.write_clock(file, content)
        except OSError as error:
            raise HarnessError(
                f"set the clock of {node}",
                str(file),
                error.strerror or str(error),
                "Make room on that disk",
            ) from error

    def _file(self, action: str, node: NodeName) -> Path:
        folder = self._folder(node)
        if node not in self._clocked:
            raise CapabilityError(
                action,
                "runtime local",
                "these nodes were deployed without clocks of their own",
                "Plans with clock faults deploy them so (DeploymentSpec.clocks)",
            )
        return folder / _FILE


class _Ticker:
    """Rewrites a clock's file until it is stopped."""

    def __init__(self, file: Path, warp: ClockWarp) -> None:
        self._file = file
        self._warp = warp
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="clock", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        began = time.monotonic_ns()
        while not self._is_over.wait(_TICK_S):
            try:
                elapsed_ns = time.monotonic_ns() - began
                line = wall_clocks.offset_line(
                    self._warp.offset_us, self._warp.drift_ppm, elapsed_ns
                )
                wall_clocks.write_clock(self._file, line)
            except OSError:
                return  # a full disk: the clock stays as it is, and the next act says so


def _unreadable(node: NodeName, problem: str) -> HarnessError:
    return HarnessError(
        f"read the clock of {node}", "sh, env and date", problem, "Look at these programs"
    )
