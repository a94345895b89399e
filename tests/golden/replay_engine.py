"""Reads back what a run has left: the one part of the goldens that knows who makes a plan of it."""

from pathlib import Path

from splitbrain.contracts.fault import ActualFault, Fault
from splitbrain.contracts.names import NodeName
from splitbrain.harness.campaign.replaying.recorded import replay_options
from splitbrain.harness.run.options import TestOptions
from splitbrain.nemesis.kinds import fault_kind
from splitbrain.nemesis.plan_file import from_file_faults
from splitbrain.nemesis.scripted import SCRIPTED
from splitbrain.nemesis.targets import ClusterView


def replayed(run: Path, *, pinned: bool) -> TestOptions:
    """The options that repeat a recorded run; raises what that raises."""
    return replay_options(run, pinned=pinned)


def resolved(fault: Fault, view: ClusterView) -> ActualFault | None:
    """A fault of the replay, as it is settled in a cluster."""
    return fault_kind(fault.kind).actual(fault, view)


def scripted(name: str, time_limit_ms: int, nodes: tuple[NodeName, ...]) -> list[Fault]:
    """The schedule of a plan with a name."""
    plan = SCRIPTED[name](time_limit_ms)
    return list(from_file_faults(plan.faults, nodes, time_limit_ms, overlap=plan.overlap))
