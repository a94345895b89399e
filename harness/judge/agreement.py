"""Whether the members of a run came to agree, and which of them may hold what others do not.

That nodes do not agree within their patience, although every fault was healed, is a finding of its
own: nothing that is read from them then speaks for the others, and nobody knows whether they ever
would. It is ``unknown`` and never ``invalid``; that they hold different records at one place is for
the checkers to find. Source: issue 18, section 4.
"""

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.harness.folder.plan_checkers import reads_speak_for
from splitbrain.harness.judge.evidence_loader import RunRecord
from splitbrain.systems.registry import names as system_names
from splitbrain.systems.registry import system

CHECKER_NAME = "convergence"


def disagreement(record: RunRecord) -> str | None:
    """Why the nodes did not agree, one sentence; None where they did or were not asked."""
    details = [phase.detail for phase in record.phases if phase.phase == "not-converged"]
    if not details:
        return None
    return f"The nodes did not come to agree: {(details[-1] or 'nobody knows why').rstrip('.')}."


def was_due(record: RunRecord) -> bool:
    """The nodes had their time to agree, every fault healed, and did not."""
    if disagreement(record) is None or record.reached("interrupted"):
        return False
    return record.reached("healed")


def judge_convergence(record: RunRecord) -> CheckResult:
    """The finding on a run whose nodes should have agreed and did not."""
    told = f"All faults were healed. {disagreement(record)}"
    return CheckResult(CHECKER_NAME, Verdict.UNKNOWN, told)


def members(record: RunRecord, *, converged: bool) -> frozenset[str]:
    """Nodes each of which may hold what no other does; none where one answer speaks for all.

    What only a node holds that does not vote is nothing that the cluster holds.
    """
    plan = record.plan
    claimed = None if plan is None else plan.reads_speak_for
    # Plans of earlier versions do not say, and their adapters do.
    if claimed is None and plan is not None and plan.experiment.system in system_names():
        claimed = reads_speak_for(system(plan.experiment.system))
    if claimed == "cluster" or (claimed == "converged" and converged):
        return frozenset()
    return frozenset(record.node_names) - frozenset(record.observers)
