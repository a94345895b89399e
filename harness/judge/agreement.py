"""Agreement of a run's nodes, and the nodes that may hold records no other holds.

Nodes that disagree although every fault was healed make a finding of its own, ``unknown`` and never
``invalid``: a read from one no longer speaks for the others. Source: issue 18, section 4.
"""

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.harness.folder.plan_checkers import reads_speak_for
from splitbrain.harness.judge.evidence_loader import RunRecord
from splitbrain.systems.registry import names as system_names
from splitbrain.systems.registry import system

CHECKER_NAME = "convergence"


def disagreement(record: RunRecord) -> str | None:
    """Return one sentence on why the nodes did not agree; None where they did or were not asked."""
    details = [phase.detail for phase in record.phases if phase.phase == "not-converged"]
    if not details:
        return None
    return f"The nodes did not come to agree: {(details[-1] or 'nobody knows why').rstrip('.')}."


def was_due(record: RunRecord) -> bool:
    """Return whether the nodes failed to agree in time although every fault was healed."""
    if disagreement(record) is None or record.reached("interrupted"):
        return False
    return record.reached("healed")


def judge_convergence(record: RunRecord) -> CheckResult:
    """Return the finding on a run whose nodes should have agreed and did not."""
    reason = f"All faults were healed. {disagreement(record)}"
    return CheckResult(CHECKER_NAME, Verdict.UNKNOWN, reason)


def members(record: RunRecord, *, converged: bool) -> frozenset[str]:
    """Return nodes each of which may hold what no other does; none where one answer speaks for all.

    An observer's records are not the cluster's: it has no vote.
    """
    plan = record.plan
    claimed = None if plan is None else plan.reads_speak_for
    # Plans of earlier versions leave it out; their adapters declare it.
    if claimed is None and plan is not None and plan.experiment.system in system_names():
        claimed = reads_speak_for(system(plan.experiment.system))
    if claimed == "cluster" or (claimed == "converged" and converged):
        return frozenset()
    return frozenset(record.node_names) - frozenset(record.observers)
