"""Looks from outside whether what a fault kind expects is so.

Links are probed by new connections between the nodes' own networks, processes by what the runtime
sees, silence by the clients' traffic. What was seen once need not be probed again while the rest
is waited for: probes of a fault in force take their whole timeout.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from contracts.runtime import Runtime
from contracts.system import PEER_PORT
from harness.run_clock import NANOSECONDS, RunClock
from harness.stop import NotYetError, Stop
from harness.traffic import Traffic
from nemesis.expectations import Expectation, LinkIs, NodeIs, NodeIsSilent

#: How long one probe waits for an answer.
PROBE_TIMEOUT_S = 0.5
_PROBES_AT_ONCE = 8
_INTERVAL_S = 0.02
#: A node counts as silent when it has acknowledged nothing for this long after the fault.
_SILENCE_NS = NANOSECONDS // 4


class Evidence(msgspec.Struct, frozen=True):
    """What was seen."""

    #: Whether everything expected was seen in time.
    seen: bool
    sentence: str


class Observer:
    """Checks expectations against the runtime and the clients' traffic."""

    def __init__(self, runtime: Runtime, traffic: Traffic, clock: RunClock) -> None:
        self._runtime = runtime
        self._traffic = traffic
        self._clock = clock

    def await_all(
        self, expectations: Sequence[Expectation], since: int, patience_s: float, stop: Stop
    ) -> Evidence:
        """Wait until each expectation was seen, at most ``patience_s``.

        Args:
            expectations: what to look for.
            since: when the runtime was done injecting or healing, ns since the run's start.
            patience_s: how long to go on looking.
            stop: ends the wait early.
        """
        missing = list(expectations)

        def look() -> None:
            missing[:] = self._unseen(missing, since)
            if missing:
                raise NotYetError(missing[0].sentence())

        try:
            stop.retrying(patience_s, _INTERVAL_S, NotYetError)(look)
        except NotYetError:
            unseen = "; ".join(item.sentence() for item in missing[:3])
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            return Evidence(False, f"not seen: {unseen}{more}")
        took_ms = (self._clock.now() - since) // 1_000_000
        return Evidence(True, f"{_summary(expectations)} after {took_ms} ms")

    def await_acknowledgement(self, since: int, patience_s: float, stop: Stop) -> Evidence:
        """Wait until an operation that was invoked after ``since`` is acknowledged."""

        def look() -> None:
            if not self._traffic.acknowledged_since(since):
                raise NotYetError("no operation acknowledged")

        try:
            stop.retrying(patience_s, _INTERVAL_S, NotYetError)(look)
        except NotYetError as error:
            return Evidence(False, f"{error} within {patience_s:g} s")
        took_ms = (self._clock.now() - since) // 1_000_000
        return Evidence(True, f"an operation acknowledged after {took_ms} ms")

    def _unseen(self, expectations: Sequence[Expectation], since: int) -> list[Expectation]:
        with ThreadPoolExecutor(_PROBES_AT_ONCE, thread_name_prefix="probe") as pool:
            looks = [(item, pool.submit(self._is_so, item, since)) for item in expectations]
            return [item for item, look in looks if not look.result()]

    def _is_so(self, expectation: Expectation, since: int) -> bool:
        match expectation:
            case LinkIs(link, is_open):
                return self._runtime.reachable(link, PEER_PORT, PROBE_TIMEOUT_S) == is_open
            case NodeIs(node, status):
                return self._runtime.status(node) == status
            case NodeIsSilent(node):
                silent = not self._traffic.acknowledged_since(since, node)
                return silent and self._clock.now() - since >= _SILENCE_NS


def _summary(expectations: Sequence[Expectation]) -> str:
    """All expectations in one clause: links counted, nodes named."""
    links = [item.open for item in expectations if isinstance(item, LinkIs)]
    words = [
        f"{links.count(is_open)} links {state}"
        for is_open, state in ((False, "cut"), (True, "open"))
        if is_open in links
    ]
    words += [item.sentence() for item in expectations if not isinstance(item, LinkIs)]
    return ", ".join(words)
