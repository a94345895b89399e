"""The child side of a sweep: tries seeds one after another until its input ends.

Started as ``python -P -m harness.simulation.sweep_worker``, with frames in and out. The first frame
names what tries a seed (``module:function``) and what it is told of the sweep. A fresh interpreter
and no fork: a sweep may have threads. Must never outlive its parent, also while a seed is under
way.
"""

import pickle
from typing import Any

import msgspec

from harness.child_side import bodies_from, resolve
from harness.frames import take_over_pipes, write_frame


class Assignment(msgspec.Struct, frozen=True):
    """The first frame."""

    #: ``module:function``, called as ``function(order, seed, purpose)``.
    function: str
    #: Anything that pickles; the same for all seeds.
    order: Any


def main() -> None:
    """Announce readiness, then answer each seed with its result."""
    incoming, outgoing = take_over_pipes()
    bodies = bodies_from(incoming)
    assignment: Assignment = pickle.loads(bodies.get())  # noqa: S301 - from our own parent
    function = resolve(assignment.function)
    write_frame(outgoing, None)
    while True:
        seed, purpose = pickle.loads(bodies.get())  # noqa: S301 - from our own parent
        write_frame(outgoing, function(assignment.order, seed, purpose))


if __name__ == "__main__":
    main()
