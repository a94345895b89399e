"""Whether the members of a run came to agree, and which of them may hold what others do not.

That nodes do not agree within their patience, although every fault was healed, is a finding of its
own: nothing that is read from them then speaks for the others, and nobody knows whether they ever
would. It is ``unknown`` and never ``invalid``; that they hold different records at one place is for
the checkers to find. Source: issue 18, section 4.
"""

from checker.verdict import CheckResult, Verdict
from harness.evidence_loader import RunRecord
from harness.plan_record import reads_speak_for
from systems.registry import names as system_names
from systems.registry import system

CHECKER_NAME = "convergence"


def disagreement(record: RunRecord) -> str | None:
    """What kept the nodes from agreeing, one sentence; None where they did or were not asked."""
    details = [phase.detail for phase in record.phases if phase.phase == "not-converged"]
    if not details:
        return None
    return f"The nodes did not come to agree: {(details[-1] or 'nobody knows why').rstrip('.')}."


def judge_convergence(record: RunRecord) -> CheckResult | None:
    """The finding; None where there is none, or where the run was ended before its time."""
    told = disagreement(record)
    if told is None or record.reached("interrupted") or not record.reached("healed"):
        return None
    return CheckResult(CHECKER_NAME, Verdict.UNKNOWN, f"All faults were healed. {told}")


def members(record: RunRecord, *, converged: bool) -> frozenset[str]:
    """Nodes each of which may hold what no other does; none where one answer speaks for all.

    What only a node holds that does not vote is nothing that the cluster holds.
    """
    plan = record.plan
    claimed = None if plan is None else plan.reads_speak_for
    # Plans of earlier versions do not say, and their adapters do.
    if claimed is None and plan is not None and plan.system in system_names():
        claimed = reads_speak_for(system(plan.system))
    if claimed == "cluster" or (claimed == "converged" and converged):
        return frozenset()
    return frozenset(record.node_names) - frozenset(record.observers)
