"""What a search on a real runtime came to, in words. Pure."""

import shlex
from pathlib import Path

from contracts.fault import Fault
from harness.plain_text import printable
from harness.results import counted
from harness.shrinking.oracle import Answer
from nemesis.awaiting import sentence
from nemesis.plan_file import in_ms
from nemesis.plan_shrink import PlanShape
from nemesis.search import INTERRUPTED, SearchBudget


def headline(
    before: PlanShape, best: Answer, budget: SearchBudget, plans: int, *, is_minimal: bool
) -> str:
    """What became smaller, how often it failed, and whether anything may still go."""
    after = best.shape
    how = "none of them can go alone" if is_minimal else "some may still go"
    if (reason := budget.exhausted()) is not None:
        how += f"; cut short: {reason}"
    return (
        f"faults {len(before.faults)} -> {len(after.faults)}, seconds "
        f"{before.time_limit_ms / 1000:g} -> {after.time_limit_ms / 1000:g}, nodes {before.nodes} "
        f"-> {after.nodes}, clients {before.clients} -> {after.clients}; {how}; failed with the "
        f"same verdict in {best.failed} of {counted(best.tried, 'try', 'tries')} "
        f"({counted(plans, 'plan')}, {counted(budget.tries, 'run')}, {budget.elapsed_s:,.0f} s)."
    )


def fault_lines(shape: PlanShape) -> list[str]:
    """Each fault that is left, in one line."""
    return [printable(f"  {_fault(fault)}") for fault in shape.faults] or ["  no fault is needed"]


def to_be_continued(budget: SearchBudget, folder: Path) -> str | None:
    """How to go on with a search that ended early; None if it did not."""
    reason = budget.exhausted()
    if reason is None:
        return None
    how = "interrupted" if reason == INTERRUPTED else f"ended early, for {reason}"
    return f"{how}; `splitbrain shrink {shlex.quote(str(folder))}` goes on from here"


def comment_lines(run: str, verdict: str, answer: Answer) -> list[str]:
    """What stands above the plan in its file."""
    shape = answer.shape
    size = (
        f"--nodes {shape.nodes} --time-limit {shape.time_limit_ms / 1000:g} --concurrency "
        f"{shape.clients} --rate {shape.rate:g}"
    )
    found = f"{verdict}, in {answer.failed} of {answer.tried} tries"
    return [f"What is left of {run}: {found}", f"with {size}."]


def _fault(fault: Fault) -> str:
    when = f"at {in_ms(fault.at_us):,} ms"
    if fault.when is not None:
        later = f", {in_ms(fault.when.delay_us):,} ms later" if fault.when.delay_us else ""
        when = f"when {sentence(fault.when)} has happened after {in_ms(fault.at_us):,} ms{later}"
    options = f" {fault.options}" if fault.options else ""
    return f"{fault.kind} of {fault.target}, {when} for {in_ms(fault.duration_us):,} ms{options}"
