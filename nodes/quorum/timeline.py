"""Moments on the replica's clock."""

from splitbrain.nodes.quorum.identifiers import Microseconds


def earliest(*moments: Microseconds | None) -> Microseconds | None:
    """Return the first of several moments; None stands for never."""
    first = None
    for moment in moments:
        if moment is not None and (first is None or moment < first):
            first = moment
    return first
