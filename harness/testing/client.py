"""A synchronous client of a test, whose operations are recorded as a run's are."""

import threading
from collections.abc import Callable
from typing import Any

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.system import Route
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.clients import SlotClient
from splitbrain.harness.testing.client_loop import ClientLoop
from splitbrain.harness.testing.refusals import OneSentence

__tracebackhide__ = True  # pytest shows the test's own line


class _OfThread(threading.local):
    client: SlotClient | None = None


class RecordedClient:
    """May be used from several threads, each of which is a process of the history."""

    def __init__(
        self, clients: ClientLoop, route: Route, check_standing: Callable[[], object], stop: Stop
    ) -> None:
        """``check_standing`` raises once the cluster is over."""
        self._clients, self._route, self._check_standing = clients, route, check_standing
        self._stop = stop
        self._of_thread = _OfThread()

    def read(self, key: object) -> Completion:
        """Read a register or a set."""
        return self.invoke("read", key)

    def write(self, key: object, value: Any) -> Completion:
        """Write a register."""
        return self.invoke("write", key, value)

    def cas(self, key: object, expected: Any, new: Any) -> Completion:
        """Compare and set a register; the value of the ``ok`` says whether it succeeded."""
        return self.invoke("cas", key, [expected, new])

    def add(self, key: object, element: Any) -> Completion:
        """Add an element to a set."""
        return self.invoke("add", key, element)

    def invoke(self, f: str, key: object = None, value: Any = None) -> Completion:
        """Perform any operation of the cluster's workload; a key is text.

        Returns:
            Its outcome: ``ok`` (it happened), ``fail`` (it certainly did not) or ``info`` (nobody
            knows).

        Raises:
            UsageError: the workload has no such operation, or it cannot be recorded.
            HarnessError: the history cannot be written, or the system's client raised an error.
        """
        with OneSentence():
            self._check_standing()
            if key is not None and not isinstance(key, str):
                kind = type(key).__name__
                raise UsageError(f"a key of the type {kind} cannot be recorded", "Give it as text")
            try:
                value = msgspec.to_builtins(value)
                msgspec.json.encode(value)
            except (TypeError, ValueError) as error:
                kind = type(value).__name__
                raise UsageError(
                    f"a value of the type {kind} cannot be recorded: {error}",
                    "Give it as JSON has it: numbers, text, lists, objects",
                ) from error
            operation = Operation(f, key, value)
            self._clients.workload.own(operation)
            client = self._of_thread.client
            if client is None:
                client = self._of_thread.client = self._clients.open(self._route)
            completion = self._clients.perform(client, operation)
        # With its cause, which may be an error of the test's own function.
        if self._stop.failure is not None:
            raise self._stop.failure.with_traceback(None)
        return completion
