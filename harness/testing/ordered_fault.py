"""A fault that a test begins and ends: proven before the test goes on, healed and proven again.

It is carried out as one of a plan is, on a thread of its own, where it waits for the test.
"""

import threading
from collections.abc import Callable
from typing import Final

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.fault import Fault, FaultEvent
from splitbrain.harness.run.attempts import failure
from splitbrain.harness.run.nemesis_driver import NemesisDriver, Order

__tracebackhide__ = True  # pytest shows the test's own line

#: Phases with which it is known whether it took effect.
_SEEN: Final = ("verified", "not-bitten", "not-applicable")


class OrderedFault:
    """One fault; ``begin``, then ``end``, whatever came of it."""

    def __init__(
        self, nemesis: NemesisDriver, fault: Fault, *, undone: Callable[[], None] = lambda: None
    ) -> None:
        """``undone`` is called once it is seen gone, before clients are seen to be served again."""
        self._nemesis, self._fault, self._undone = nemesis, fault, undone
        self._order = Order(threading.Event(), self._tell)
        #: Set when it is known whether it took effect, also when its thread ends.
        self._is_seen = threading.Event()
        self._event: FaultEvent | None = None
        self._failure: HarnessError | None = None
        name = f"fault {fault.kind}"
        self._thread = threading.Thread(target=self._carry_out, name=name, daemon=True)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Nodes that it hit."""
        return () if self._event is None else self._event.nodes

    @property
    def evidence(self) -> str:
        """Observation that it took effect, in words and figures."""
        return "" if self._event is None else self._event.evidence or ""

    def begin(self) -> None:
        """Inject it and wait until it was seen to take effect.

        Raises:
            HarnessError: it did not, or cannot; it is healed by then.
        """
        self._thread.start()
        try:
            self._is_seen.wait()
        except BaseException:
            self.end()
            raise
        event = self._event
        if event is not None and event.phase == "verified":
            return
        self.end()
        because = "its thread ended" if event is None else event.evidence or event.phase
        raise HarnessError(
            f"inject the fault {self._fault.kind}:{self._fault.target}",
            ", ".join(self.nodes) or "no node",
            because,
            "Choose another target or moment: a test under a fault that is not there proves "
            "nothing",
        )

    def end(self) -> None:
        """Heal it, and wait until it is seen gone and clients are served, or not in time.

        Raises:
            HarnessError: it would not go, or the runtime failed.
        """
        self._order.over.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _carry_out(self) -> None:
        try:
            self._nemesis.strike(self._fault, self._order)
        # Raised again on the test's own thread.
        except Exception as error:  # noqa: BLE001
            self._failure = failure(error)
        finally:
            self._is_seen.set()

    def _tell(self, event: FaultEvent) -> None:
        if event.phase in _SEEN and not self._is_seen.is_set():
            self._event = event
            self._is_seen.set()
        if event.phase == "removed":
            self._undone()
