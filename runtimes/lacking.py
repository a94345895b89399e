"""Arms of runtimes that have none: each act is refused in one sentence, nothing is done.

Two questions have an honest answer all the same: nothing is shaped, nothing is throttled.
"""

from collections.abc import Iterable, Sequence
from typing import NoReturn

from contracts.arms import ClockWarp, DiskState, FileChange, LinkQuality, MemoryState, Shape
from contracts.errors import CapabilityError
from contracts.fault import Link
from contracts.names import NodeName


class _Lacking:
    """Refuses in the runtime's name.

    Args:
        runtime_name: of the runtime that lacks the arm.
        next_step: what the user can do about it, in one sentence.
        problem: why it cannot be had, in one clause.
    """

    what = "do this"

    def __init__(self, runtime_name: str, next_step: str, problem: str = "") -> None:
        self._runtime_name = runtime_name
        self._next_step = next_step
        self._problem = problem or f"this runtime cannot {self.what}"

    def _refuse(self, action: str) -> NoReturn:
        raise CapabilityError(
            action, f"runtime {self._runtime_name}", self._problem, self._next_step
        )


class LackingLinks(_Lacking):
    """Implements :class:`contracts.arms.LinkArm` by refusing."""

    what = "reach the links between its nodes"

    def shape(self, links: Iterable[Link], shape: Shape) -> str:
        """Refused."""
        del links, shape
        self._refuse("shape links")

    def unshape(self, links: Iterable[Link]) -> None:
        """Refused."""
        del links
        self._refuse("let shaped links be as they were")

    def shaped(self) -> dict[Link, Shape]:
        """None are."""
        return {}

    def reset(self, links: Iterable[Link]) -> None:
        """Refused."""
        del links
        self._refuse("reset the connections along links")

    def unreset(self, links: Iterable[Link]) -> None:
        """Refused."""
        del links
        self._refuse("stop to reset the connections along links")

    def measure(self, link: Link, probes: int, timeout_s: float) -> LinkQuality:
        """Refused."""
        del probes, timeout_s
        self._refuse(f"measure the link from {link.source} to {link.destination}")


class LackingProcesses(_Lacking):
    """Implements :class:`contracts.arms.ProcessArm` by refusing."""

    what = "do more to a node's processes than kill and freeze them"

    def terminate(self, node: NodeName, patience_s: float) -> int | None:
        """Refused."""
        del patience_s
        self._refuse(f"terminate {node}")

    def throttle(self, node: NodeName, cpu_share: float) -> None:
        """Refused."""
        del cpu_share
        self._refuse(f"throttle {node}")

    def unthrottle(self, node: NodeName) -> None:
        """Refused."""
        self._refuse(f"end the throttle of {node}")

    def throttled(self, node: NodeName) -> float | None:
        """It is not."""
        del node

    def limit_memory(self, node: NodeName, limit_mib: int) -> None:
        """Refused."""
        del limit_mib
        self._refuse(f"limit the memory of {node}")

    def unlimit_memory(self, node: NodeName) -> None:
        """Refused."""
        self._refuse(f"end the memory limit of {node}")

    def memory(self, node: NodeName) -> MemoryState:
        """There is no limit."""
        del node
        return MemoryState(None, was_ended=False)


class LackingDisks(_Lacking):
    """Implements :class:`contracts.arms.DiskArm` by refusing."""

    what = "reach the disks of its nodes"

    def power_off(self, nodes: Sequence[NodeName], draw: int) -> NoReturn:
        """Refused."""
        del draw
        self._refuse(f"cut the power of {', '.join(nodes)}")

    def fill(self, node: NodeName) -> str:
        """Refused."""
        self._refuse(f"fill the disk of {node}")

    def drain(self, node: NodeName) -> None:
        """Refused."""
        self._refuse(f"make room on the disk of {node}")

    def stall(self, node: NodeName) -> None:
        """Refused."""
        self._refuse(f"stall the disk of {node}")

    def unstall(self, node: NodeName) -> None:
        """Refused."""
        self._refuse(f"let the disk of {node} go on")

    def fail(self, node: NodeName) -> str:
        """Refused."""
        self._refuse(f"have the disk of {node} fail")

    def repair(self, node: NodeName) -> None:
        """Refused."""
        self._refuse(f"repair the disk of {node}")

    def change(self, node: NodeName, change: FileChange) -> NoReturn:
        """Refused."""
        self._refuse(f"change {change.file} of {node}")

    def keep(self, node: NodeName) -> None:
        """Refused."""
        self._refuse(f"keep a copy of the data of {node}")

    def read(self, node: NodeName, file: str, offset: int, length: int) -> bytes:
        """Refused."""
        del offset, length
        self._refuse(f"read {file} of {node}")

    def wipe(self, node: NodeName) -> str:
        """Refused."""
        self._refuse(f"wipe the data of {node}")

    def state(self, node: NodeName, timeout_s: float) -> DiskState:
        """Refused."""
        del timeout_s
        self._refuse(f"look at the disk of {node}")


class LackingClocks(_Lacking):
    """Implements :class:`contracts.arms.ClockArm` by refusing."""

    what = "give a node a clock of its own"

    def warp(self, node: NodeName, warp: ClockWarp) -> None:
        """Refused."""
        del warp
        self._refuse(f"warp the clock of {node}")

    def unwarp(self, node: NodeName) -> None:
        """Refused."""
        self._refuse(f"put right the clock of {node}")

    def offset_ms(self, node: NodeName) -> int:
        """Refused."""
        self._refuse(f"read the clock of {node}")
