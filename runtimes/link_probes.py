"""Probes of links: two tools, one at each end, and the figures of datagrams between them.

The tools are those of ``docker/pod/probe.py``; how one gets to run inside a node's network is the
runtime's business. It must change nothing.
"""

import itertools
import json
import statistics
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from splitbrain.contracts.arms import LARGE_PROBE_BYTES, LinkQuality
from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName

#: Probes are counted at one of these ports; no system that is known listens there for datagrams.
_FIRST_PORT: Final = 47_000
_PORTS: Final = 900
#: How long one who counts outlives the time of those who send to him, at most.
_GRACE_S: Final = 20.0
#: One in so many round trips is no part of their spread, at each end.
_LEFT_OUT: Final = 20
#: Output of ``probe.py await`` where nobody counts, and the finding then.
_TIMEOUT: Final = "timeout"
_NOTHING_SENT: Final = ('{"order": [], "kbit": null}', '{"sent": 0, "trips_ms": []}')


class LinkTools(ABC):
    """Tools at the ends of links; a call raises HarnessError where the environment fails."""

    def __init__(self) -> None:
        self._measurements = itertools.count()

    @abstractmethod
    def nodes(self) -> Sequence[NodeName]:
        """Return the deployed nodes."""

    @abstractmethod
    def address(self, node: NodeName) -> str:
        """Address of the node in the network of nodes; raises for one that is not deployed."""

    @abstractmethod
    def run(self, node: NodeName, command: Sequence[str]) -> str:
        """Run a tool inside the node's network; what it printed."""

    @abstractmethod
    def answer_with_resets(self, node: NodeName, sources: Collection[str]) -> None:
        """From now on answer exactly these addresses' packets of connections with resets."""

    @abstractmethod
    def answered_with_resets(self, node: NodeName) -> Collection[str]:
        """Return those addresses, as the kernel tells it."""

    def observe(self, link: Link, probes: int, timeout_s: float) -> tuple[str, str]:
        """Send numbered datagrams; what ``probe.py`` printed at the far end and at the near.

        Where nobody counts in time none are sent: a machine may be too busy to start a program.
        """
        # Others may measure at the same node at the same time.
        port = str(_FIRST_PORT + next(self._measurements) % _PORTS)
        near_end, far_end = link.source, link.destination
        with ThreadPoolExecutor(1, thread_name_prefix="count") as pool:
            counting = pool.submit(
                self.run, far_end, ["probe.py", "count", port, str(timeout_s + _GRACE_S)]
            )
            try:
                try:
                    self.run(far_end, ["probe.py", "await", port, str(_GRACE_S)])
                except HarnessError as error:
                    if error.problem != _TIMEOUT:
                        raise
                    return _NOTHING_SENT
                numbers = (port, str(probes), str(LARGE_PROBE_BYTES), str(timeout_s))
                near = self.run(near_end, ["probe.py", "stream", self.address(far_end), *numbers])
            finally:
                self.run(far_end, ["probe.py", "end", port])
            return counting.result(), near


def quality_of(counted: str, streamed: str) -> LinkQuality:
    """Read the findings of probes from the output of ``probe.py count`` and ``probe.py stream``."""
    far: dict[str, Any] = json.loads(counted)
    near: dict[str, Any] = json.loads(streamed)
    first = list(dict.fromkeys(far["order"]))
    overtaking, earliest_behind = 0, len(first) + int(near["sent"])
    for number in reversed(first):
        overtaking += earliest_behind < number
        earliest_behind = min(earliest_behind, number)
    trips = near["trips_ms"]
    return LinkQuality(
        sent=near["sent"],
        arrived=len(first),
        doubled=len(far["order"]) - len(first),
        overtaking=overtaking,
        median_ms=statistics.median(trips) if trips else None,
        large_sent=near["sent"] // 2,
        large_arrived=sum(number % 2 for number in first),
        kbit=far["kbit"],
        spread_ms=_spread(trips),
    )


def _spread(trips: Sequence[float]) -> float | None:
    left_out, ordered = len(trips) // _LEFT_OUT, sorted(trips)
    return ordered[-1 - left_out] - ordered[left_out] if ordered else None
