"""Refusals: arms of runtimes that have none, and programs that go by the true time."""

from collections.abc import Callable, Iterable
from typing import Final, NoReturn

from splitbrain.contracts.arms import ClockWarp, LinkQuality, Shape
from splitbrain.contracts.errors import CapabilityError, HarnessError
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.runtimes.waiting import await_true

#: A program that was just started has yet to load its libraries.
_LOADING_PATIENCE_S: Final = 5.0
_LOADING_INTERVAL_S: Final = 0.05


def no_such_port(node: NodeName, port: str) -> HarnessError:
    """Return the refusal of a port's name that a node's spec does not have."""
    return HarnessError(
        "find a port",
        f"{node}/{port}",
        "the node listens at none of that name",
        "Name it in the node's spec",
    )


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


def refuse_timeless(
    node: NodeName, runtime_name: str, why_no_clock: Callable[[], str | None]
) -> None:
    """Raise CapabilityError for a running program that goes by the true time.

    ``why_no_clock`` looks at it: one clause, None where it reads its own clock or does not run.
    """
    problem: str | None = None

    def has_clock() -> bool:
        nonlocal problem
        problem = why_no_clock()
        return problem is None

    if not await_true(has_clock, _LOADING_PATIENCE_S, _LOADING_INTERVAL_S):
        raise CapabilityError(
            f"give {node} a clock of its own",
            f"runtime {runtime_name}",
            str(problem),
            "Leave clock faults out of the plan",
        )
