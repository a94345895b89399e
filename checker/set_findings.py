"""What was found wrong with the sets of a history, and the result that is made of it. Pure."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from checker.losses import Losses
from checker.verdict import CheckResult, Verdict

#: Violations of each kind that are told one by one.
NAMED_MAX = 20
#: Kinds of violations, most telling first.
KINDS: Final = ("lost", "phantom", "duplicated", "stale")


class Findings(msgspec.Struct):
    """Violations and counts over all sets."""

    #: Kind -> how many there are.
    counts: dict[str, int]
    #: Kind -> the first of them.
    named: dict[str, list[dict[str, Any]]]
    losses: Losses
    never_read: int = 0
    acknowledged: int = 0
    unacknowledged_seen: int = 0
    elements: int = 0
    reads: int = 0
    final_reads: int = 0

    def note(self, kind: str, describe: Callable[[], dict[str, Any]]) -> None:
        """Count a violation; the first ``NAMED_MAX`` of a kind are described."""
        self.counts[kind] += 1
        if self.counts[kind] <= NAMED_MAX:
            self.named[kind].append({"kind": kind, **describe()})


def no_findings(losses: Losses) -> Findings:
    """Nothing so far."""
    return Findings(dict.fromkeys(KINDS, 0), {kind: [] for kind in KINDS}, losses)


def result_of(findings: Findings, *, stale_reads_allowed: bool) -> CheckResult:
    """The verdict of set-full: most telling violations first."""
    figures = {
        "elements": findings.elements,
        "acknowledged": findings.acknowledged,
        "unacknowledged-seen": findings.unacknowledged_seen,
        **findings.counts,
        "never-read": findings.never_read,
        "reads": findings.reads,
        "final-reads": findings.final_reads,
        **findings.losses.figures(),
    }
    harmless = ("stale",) if stale_reads_allowed else ()
    wrong = [kind for kind in KINDS if findings.counts[kind] and kind not in harmless]
    violations = tuple(named for kind in wrong for named in findings.named[kind])
    observations = tuple(named for kind in harmless for named in findings.named[kind])
    if violations:
        verdict = Verdict.INVALID
        # The example follows its own kind: a lost element is none of the stale ones.
        others = _counted(findings, wrong[1:])
        reason = f"{_counted(findings, wrong[:1])}: {violations[0]['sentence']}"
        reason += f" Also {others}." if others else ""
    elif findings.never_read:
        verdict = Verdict.UNKNOWN
        reason = (
            f"{findings.never_read:,} of {findings.acknowledged:,} acknowledged elements were "
            "never looked for: no read was invoked after they were acknowledged."
        )
    elif not findings.elements:
        verdict = Verdict.UNKNOWN
        reason = "Nobody ever added an element or saw one, so there is nothing to judge."
    else:
        verdict = Verdict.VALID
        reason = (
            f"All {findings.acknowledged:,} acknowledged elements are shown by every read invoked "
            "after they were known."
        )
    return CheckResult(
        checker="set-full",
        verdict=verdict,
        reason=reason,
        figures=figures,
        violations=violations,
        observations=observations,
        lists=findings.losses.lists(),
    )


def _counted(findings: Findings, wrong: Sequence[str]) -> str:
    """These kinds in figures; of lost elements also whose fault it was."""
    clauses: list[str] = []
    if "lost" in wrong:
        lost = findings.losses.acknowledged
        if lost:
            all_ = f"{lost:,} of {findings.acknowledged:,} acknowledged elements are lost"
            clauses.append(": ".join(filter(None, (all_, findings.losses.clauses()))))
        if only_seen := findings.counts["lost"] - lost:
            clauses.append(f"{only_seen:,} that were only seen are lost")
    clauses += [f"{findings.counts[kind]:,} {kind}" for kind in wrong if kind != "lost"]
    return "; ".join(clauses)
