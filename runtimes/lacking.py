"""Arms of runtimes that have none: each act is refused in one sentence, nothing is done."""

from collections.abc import Iterable
from typing import NoReturn

from splitbrain.contracts.arms import ClockWarp, LinkQuality, Shape
from splitbrain.contracts.errors import CapabilityError
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName


class _Lacking:
    """Refuses in the runtime's name, with the problem, one clause, and the user's next step."""

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
        self._refuse("shape links")

    def unshape(self, links: Iterable[Link]) -> None:
        """Refused."""
        self._refuse("let shaped links be as they were")

    def shaped(self) -> dict[Link, Shape]:
        """Return none: that is an honest answer."""
        return {}

    def reset(self, links: Iterable[Link]) -> None:
        """Refused."""
        self._refuse("reset the connections along links")

    def unreset(self, links: Iterable[Link]) -> None:
        """Refused."""
        self._refuse("stop to reset the connections along links")

    def measure(self, link: Link, probes: int, timeout_s: float) -> LinkQuality:
        """Refused."""
        self._refuse(f"measure the link from {link.source} to {link.destination}")


class LackingClocks(_Lacking):
    """Implements :class:`contracts.arms.ClockArm` by refusing."""

    what = "give a node a clock of its own"

    def warp(self, node: NodeName, warp: ClockWarp) -> None:
        """Refused."""
        self._refuse(f"warp the clock of {node}")

    def unwarp(self, node: NodeName) -> None:
        """Refused."""
        self._refuse(f"put right the clock of {node}")

    def offset_ms(self, node: NodeName) -> int:
        """Refused."""
        self._refuse(f"read the clock of {node}")
