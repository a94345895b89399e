"""The child side of a sweep: tries seeds one after another until its input ends.

Started as ``python -P -m harness.simulation.sweep_worker``, with frames in and out. The first frame
names what tries a seed (``module:function``) and what it is told of the sweep. A fresh interpreter
and no fork: a sweep may have threads. Must never outlive its parent: a thread reads the input and
ends the process at its end, also while a seed is under way.
"""

import importlib
import os
import pickle
import queue
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

import msgspec

from harness.frames import read_body, take_over_pipes, write_frame


class Assignment(msgspec.Struct, frozen=True):
    """The first frame."""

    #: ``module:function``, called as ``function(order, seed, purpose)``.
    function: str
    #: Anything that pickles; the same for all seeds.
    order: Any


def _resolve(function: str) -> Callable[[Any, int, str], Any]:
    """The function that ``module:name`` names."""
    module, _, name = function.partition(":")
    return getattr(importlib.import_module(module), name)


def _read_frames(stream: BinaryIO, frames: "queue.SimpleQueue[bytes]") -> None:
    while (body := read_body(stream)) is not None:
        frames.put(body)
    # The parent is gone or has what it wanted; a seed under way is of no use to anyone.
    os._exit(0)


def main() -> None:
    """Announce readiness, then answer each seed with its result."""
    incoming, outgoing = take_over_pipes()
    frames: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_frames, args=(incoming, frames), daemon=True).start()
    assignment: Assignment = pickle.loads(frames.get())  # noqa: S301 - from our own parent
    function = _resolve(assignment.function)
    write_frame(outgoing, None)
    while True:
        seed, purpose = pickle.loads(frames.get())  # noqa: S301 - from our own parent
        write_frame(outgoing, function(assignment.order, seed, purpose))


if __name__ == "__main__":
    main()
