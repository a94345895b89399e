"""Whether a fault may make a voter forget, as far as can be established from outside, pure.

Consensus survives crashes and any minority that is down. It does not survive a voter that forgets
what it had flushed and takes part again: with a record on A and B, a forgetful B elects C without
it. So a voter may forget only where nobody could be elected without what was promised, even if all
that ever forgot vote as if they had never lived. Two questions, unknown is no in both:

- ``reason_against`` and ``reason_unknown``, before the fault: could so many forgetful voters be
  borne at all, and do the voters tell what must be known?
- ``demand_of`` and ``reason_unmet``, once the nodes hit are down and before their disks are
  touched: do so many others hold on their disks, in the newest epoch, all that may have been
  committed with the help of the nodes hit, that every majority has one of them?

Why the second comes after the end of the nodes hit: (1) a record may be on its way to being
committed while one looks, by the word of a node hit; (2) once that is down, what it helped to
commit lies below the ends of the logs that the others have by then, and what is committed later
has a majority without it. Why in the newest epoch: a voter forgets its vote too; one that has heard
of a commit of that epoch votes in it for nobody, nor in an earlier one.

The simulation asks its ghost state instead. Source: design, section 9.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from splitbrain.contracts.fault import ActualFault
from splitbrain.contracts.names import NodeName
from splitbrain.nemesis.fault_kind import FaultKind

NEVER = -1


class VoterReport(msgspec.Struct, frozen=True):
    """A voter's own word on its log, all lives together; -1: nothing."""

    #: The newest epoch that it was in.
    epoch: int = NEVER
    #: End of its log now.
    end: int = NEVER
    #: Its highest high watermark.
    committed: int = NEVER
    #: Up to where it had on its disk what it knew to be committed.
    held: int = NEVER
    #: The newest epoch in which it told of a commit.
    held_epoch: int = NEVER


class Demand(msgspec.Struct, frozen=True):
    """Records that others must hold before a node may forget."""

    #: Heard of a commit in this epoch, or a later one.
    epoch: int
    #: All that is committed below it is on their disks, and that reaches so far.
    offset: int


def majority_of(nodes: Sequence[NodeName]) -> int:
    """Return the fewest voters that can elect."""
    return len(nodes) // 2 + 1


def reason_against(
    kind: FaultKind,
    fault: ActualFault,
    nodes: Sequence[NodeName],
    forgot: Collection[NodeName],
) -> str | None:
    """Why the fault must not strike, whatever voters hold; None: that is still to be seen.

    ``forgot``: those that may have forgotten something in this run.
    """
    if kind.rule == "keeps":
        return None
    if kind.rule == "lies":
        return "beyond the promise: nobody can tell that a disk is older than it was"
    forgetful = [node for node in nodes if node in forgot or node in fault.nodes]
    if len(forgetful) >= majority_of(nodes):
        return f"beyond the promise: {', '.join(forgetful)} would have forgotten, a majority"
    if len(nodes) - len(forgetful) < majority_of(nodes):
        return (
            f"beyond the promise: without {', '.join(forgetful)}, who would have forgotten, no "
            "majority is left"
        )
    return None


def reason_unknown(
    nodes: Sequence[NodeName], reports: Mapping[NodeName, VoterReport]
) -> str | None:
    """Why nobody could tell what voters hold once others are down; None: they tell of it."""
    silent = [node for node in nodes if reports.get(node, VoterReport()).held == NEVER]
    if silent:
        return (
            f"nobody can tell whether it is within the promise: {', '.join(silent)} never told of "
            "what is committed and on its disk"
        )
    return None


def demand_of(
    nodes: Sequence[NodeName], hit: Collection[NodeName], reports: Mapping[NodeName, VoterReport]
) -> Demand:
    """Return what the others must hold, asked once the nodes hit are down and all told is heard."""
    known = [reports.get(node, VoterReport()) for node in nodes]
    ends = [report.end for node, report in zip(nodes, known, strict=True) if node not in hit]
    return Demand(
        epoch=max(report.epoch for report in known),
        offset=max(*(report.committed for report in known), *ends),
    )


def reason_unmet(
    demand: Demand,
    nodes: Sequence[NodeName],
    forgetful: Collection[NodeName],
    reports: Mapping[NodeName, VoterReport],
) -> str | None:
    """Why somebody could be elected who lacks what was promised, None if nobody could.

    ``forgetful``: the nodes hit, and all that may have forgotten before.
    """
    lacking = [
        node
        for node in nodes
        if node in forgetful or not _meets(reports.get(node, VoterReport()), demand)
    ]
    if len(lacking) < majority_of(nodes):
        return None
    others = ", ".join(node for node in lacking if node not in forgetful)
    return (
        f"beyond the promise, as far as can be established: {others} did not tell of having on its "
        f"disk all that may be committed, up to offset {demand.offset} in epoch {demand.epoch}"
    )


def _meets(report: VoterReport, demand: Demand) -> bool:
    return report.held >= demand.offset and report.held_epoch >= demand.epoch
