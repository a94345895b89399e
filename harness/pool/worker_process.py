"""The child side of ``harness.pool.workers``: performs parts of a judgement until its input ends.

Started as ``python -m splitbrain.harness.pool.worker_process TIME_BUDGET_S MEMORY_BUDGET_MIB``,
with frames in and out. It ends with its parent, also while a part is computing: a thread reads the
input and ends the process at its end. Nothing that a part prints may reach the frames.
"""

import importlib
import os
import pickle
import queue
import sys
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from splitbrain.harness.pool.frames import read_body, take_over_pipes, write_frame
from splitbrain.history.process_budget import ProcessBudget


def resolve(function: str) -> Callable[..., Any]:
    """Return the function that ``module:name`` names."""
    module, _, name = function.partition(":")
    return getattr(importlib.import_module(module), name)


def bodies_from(stream: BinaryIO) -> "queue.SimpleQueue[bytes]":
    """Return the bodies of the frames as they come in; the process ends where they end."""
    bodies: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(stream, bodies), daemon=True).start()
    return bodies


def _read(stream: BinaryIO, bodies: "queue.SimpleQueue[bytes]") -> None:
    while (body := read_body(stream)) is not None:
        bodies.put(body)
    # The parent is gone or done with us; what is under way is of no use to anyone.
    os._exit(0)


def _perform(body: bytes, time_budget_s: float, memory_budget_mib: int) -> tuple[str, Any]:
    try:
        function, payload = pickle.loads(body)  # noqa: S301 - from our own parent
        budget = ProcessBudget(time_budget_s, memory_budget_mib)
        return "done", resolve(function)(payload, budget)
    except MemoryError:
        return "failed", "ran out of memory"
    # The one place where any exception of a checker must become a value: the parent turns it into
    # `unknown` with this reason, and the next part goes on.
    except Exception as error:  # noqa: BLE001
        return "failed", f"crashed: {type(error).__name__}: {error}"


def main() -> None:
    """A fresh interpreter's life."""
    work(float(sys.argv[1]), int(sys.argv[2]))


def work(time_budget_s: float, memory_budget_mib: int) -> None:
    """Announce readiness, then answer each part with its result."""
    incoming, outgoing = take_over_pipes()
    bodies = bodies_from(incoming)
    write_frame(outgoing, ("ready", None))
    while True:
        answer = _perform(bodies.get(), time_budget_s, memory_budget_mib)
        try:
            write_frame(outgoing, answer)
        # A result may fail to pickle in as many ways as there are results.
        except Exception as error:  # noqa: BLE001
            write_frame(outgoing, ("failed", f"crashed: its result cannot be sent: {error}"))


if __name__ == "__main__":
    main()
