"""What every child process of the harness does that is given its work in frames.

A child must never outlive its parent: a thread reads the input and ends the process at its end,
also while work is under way.
"""

import importlib
import os
import queue
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from splitbrain.harness.pool.frames import read_body


def resolve(function: str) -> Callable[..., Any]:
    """The function that ``module:name`` names."""
    module, _, name = function.partition(":")
    return getattr(importlib.import_module(module), name)


def bodies_from(stream: BinaryIO) -> "queue.SimpleQueue[bytes]":
    """The bodies of the frames as they come in; the process ends where they end."""
    bodies: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(stream, bodies), daemon=True).start()
    return bodies


def _read(stream: BinaryIO, bodies: "queue.SimpleQueue[bytes]") -> None:
    while (body := read_body(stream)) is not None:
        bodies.put(body)
    # The parent is gone or done with us; what is under way is of no use to anyone.
    os._exit(0)
