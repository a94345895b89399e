"""The one reason to end a run early: the user, a failure of the harness, a violation seen.

Every thread of a run waits on this instead of sleeping, so that a run stops within a fraction of
a second wherever it is. The first failure is kept, later ones are usually its consequences. Work
that must be finished even then (healing, collecting) waits on ``haste`` instead.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from tenacity import Retrying, retry_if_exception_type, wait_fixed
from tenacity.stop import stop_after_delay, stop_when_event_set

from splitbrain.contracts.errors import HarnessError

_Result = TypeVar("_Result")


class NotYetError(Exception):
    """A condition that is being waited for does not hold; the text says what is missing."""


class Stop:
    """Set once, seen by all threads and by the event loop."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], Any]] = []
        #: Whether the user asked for it.
        self.interrupted = False
        #: First failure of the harness or its environment.
        self.failure: HarnessError | None = None
        #: When it was noticed, by the monotonic clock, ns.
        self.failed_at: int | None = None
        self._further: dict[str, Stop] = {}

    @property
    def haste(self) -> "Stop":
        """Set when the user asks a second time, and does not want to wait for the end in order."""
        return self._besides("haste")

    @property
    def frozen(self) -> "Stop":
        """Set when the nodes are frozen as they are, so that nothing is healed any more."""
        return self._besides("frozen")

    def _besides(self, name: str) -> "Stop":
        with self._lock:
            return self._further.setdefault(name, Stop())

    def hurry(self) -> None:
        """Note that the user wants to stop and not to wait."""
        self.interrupt()
        self.haste.interrupt()

    def interrupt(self) -> None:
        """Note that the user wants to stop."""
        self.interrupted = True
        self._set()

    def freeze(self) -> None:
        """Note that the nodes are frozen, or about to be."""
        self.frozen.interrupt()
        self._set()

    def fail(self, error: HarnessError) -> None:
        """Something of ours or of the environment failed; the run ends."""
        with self._lock:
            if self.failure is None:
                self.failure, self.failed_at = error, time.monotonic_ns()
        self._set()

    def is_set(self) -> bool:
        """Whether the run is to end."""
        return self._event.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Wait that long at most; True as soon as the run is to end."""
        return self._event.wait(max(0.0, timeout_s))

    def notify(self, loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
        """Set the loop's event when the run is to end, at once if it already is."""
        with self._lock:
            self._listeners.append(lambda: loop.call_soon_threadsafe(event.set))
        if self.is_set():
            event.set()

    def forget_listeners(self) -> None:
        """Note that the event loop ends; nobody is to be told any more."""
        with self._lock:
            self._listeners.clear()

    def retrying(self, patience_s: float, interval_s: float, *errors: type[Exception]) -> Retrying:
        """Try again every ``interval_s`` while one of ``errors`` is raised.

        When patience ends, or the run does, the last error is raised.
        """
        return Retrying(
            stop=stop_after_delay(patience_s) | stop_when_event_set(self._event),
            wait=wait_fixed(interval_s),
            sleep=self._sleep,
            retry=retry_if_exception_type(errors),
            reraise=True,
        )

    def _sleep(self, seconds: float) -> None:
        self._event.wait(seconds)

    def _set(self) -> None:
        self._event.set()
        with self._lock:
            for tell in self._listeners:
                tell()


def patiently(
    action: Callable[[], Any], patience_s: float, interval_s: float, *errors: type[Exception]
) -> Any:
    """Like ``Stop.retrying`` for what must be finished even though the run is to end."""
    retrying = Stop().retrying(patience_s, interval_s, *errors)
    return retrying(action)


def within(action: Callable[[], _Result], timeout_s: float, what: str, target: str) -> _Result:
    """Return the action's result, on a thread of its own that is given up when time is over.

    For the runtime's and the adapter's acts at the end of a run: one that hangs must not keep the
    others from being done, nor the verdict from being told.

    Raises:
        HarnessError: it did not end in time.
        Exception: what the action raises.
    """
    ended: Future[_Result] = Future()

    def act() -> None:
        try:
            ended.set_result(action())
        # Whatever it is, it is raised again in the thread that waits.
        except BaseException as error:  # noqa: BLE001
            ended.set_exception(error)

    threading.Thread(target=act, name=what, daemon=True).start()
    try:
        return ended.result(timeout_s)
    except TimeoutError:
        if ended.done():
            raise
        raise HarnessError(
            what,
            target,
            f"it did not end within {timeout_s:g} s and was left alone",
            "Look at the engine's and the node's output; `splitbrain clean` removes what is left.",
        ) from None
