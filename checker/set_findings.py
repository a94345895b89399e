"""Findings about the sets of a history, and the result made of them. Pure."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from splitbrain.checker.evidence import unread_reason
from splitbrain.checker.findings import NAMED_MAX
from splitbrain.checker.losses import LISTED_MAX, Losses
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.words import counted

#: Kinds of violations, most telling first.
KINDS: Final = ("lost", "phantom", "duplicated", "missing-at-member", "stale")
#: Elements that some members lack at the end; also the name of their list in ``CheckResult``.
AT_MEMBER: Final = "missing-at-member"


class Findings(msgspec.Struct):
    """Violations and counts over all sets."""

    #: By kind.
    counts: dict[str, int]
    #: First violations, by kind.
    named: dict[str, list[dict[str, Any]]]
    losses: Losses
    never_read: int = 0
    acknowledged: int = 0
    unacknowledged_seen: int = 0
    elements: int = 0
    reads: int = 0
    final_reads: int = 0
    #: Elements missing from all final reads while a member that may hold them was not read.
    perhaps_elsewhere: int = 0
    #: Members of ``perhaps_elsewhere``.
    unread_members: set[str] = msgspec.field(default_factory=set[str])
    #: Elements lacking at the end, by member.
    lacking: Counter[str] = msgspec.field(default_factory=Counter[str])
    #: One row for each element that some members lack.
    at_member: list[dict[str, Any]] = msgspec.field(default_factory=list[dict[str, Any]])
    #: Reason for a judgement cut short.
    unfinished: str | None = None

    def note(self, kind: str, describe: Callable[[], dict[str, Any]]) -> None:
        """Count a violation; describe the first ``NAMED_MAX`` of a kind."""
        self.counts[kind] += 1
        if self.counts[kind] <= NAMED_MAX:
            self.named[kind].append({"kind": kind, **describe()})

    def note_at_member(
        self,
        element: Any,
        key: str | None,
        nodes: tuple[str, ...],
        describe: Callable[[], dict[str, Any]],
    ) -> None:
        """Count an element that these members lack and others have."""
        self.lacking.update(nodes)
        if len(self.at_member) < LISTED_MAX:
            self.at_member.append({"key": key, "value": element, "nodes": list(nodes)})
        self.note(AT_MEMBER, describe)


def no_findings(losses: Losses) -> Findings:
    """Return empty findings."""
    return Findings(dict.fromkeys(KINDS, 0), {kind: [] for kind in KINDS}, losses)


def result_of(findings: Findings, harmless: Sequence[str]) -> CheckResult:
    """Return the result of set-full, most telling violations first.

    Args:
        findings: of all sets.
        harmless: kinds that are observations only.
    """
    figures = {
        "elements": findings.elements,
        "acknowledged": findings.acknowledged,
        "unacknowledged-seen": findings.unacknowledged_seen,
        **findings.counts,
        "perhaps-elsewhere": findings.perhaps_elsewhere,
        "never-read": findings.never_read,
        "reads": findings.reads,
        "final-reads": findings.final_reads,
        **findings.losses.figures(),
    }
    wrong = [kind for kind in KINDS if findings.counts[kind] and kind not in harmless]
    violations = tuple(named for kind in wrong for named in findings.named[kind])
    observations = tuple(named for kind in harmless for named in findings.named[kind])
    unfinished = "" if findings.unfinished is None else f"Not finished: {findings.unfinished}."
    undecided = unfinished or _perhaps_elsewhere(findings) or _too_little(findings)
    if violations:
        verdict = Verdict.INVALID
        # The example follows its own kind.
        others = _counted(findings, wrong[1:])
        reason = f"{_counted(findings, wrong[:1])}: {violations[0]['sentence']}"
        reason += f" Also {others}." if others else ""
        reason = f"{reason} {_perhaps_elsewhere(findings)} {unfinished}".rstrip()
    elif undecided:
        verdict, reason = Verdict.UNKNOWN, undecided
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
        lists=findings.losses.lists()
        | ({AT_MEMBER: tuple(findings.at_member)} if findings.at_member else {}),
        undecided=undecided or None,
    )


def _perhaps_elsewhere(findings: Findings) -> str:
    if not findings.perhaps_elsewhere:
        return ""
    what = counted(findings.perhaps_elsewhere, "element is", "elements are")
    return unread_reason(f"{what} missing from every final read", findings.unread_members)


def _too_little(findings: Findings) -> str:
    if findings.never_read:
        return (
            f"{findings.never_read:,} of {findings.acknowledged:,} acknowledged elements were "
            "never looked for: no read was invoked after they were acknowledged."
        )
    if not findings.elements:
        return "Nobody ever added an element or saw one, so there is nothing to judge."
    return ""


def _counted(findings: Findings, wrong: Sequence[str]) -> str:
    """Return the counts of these kinds; for lost elements with their faults."""
    clauses: list[str] = []
    if "lost" in wrong:
        lost = findings.losses.acknowledged
        if lost:
            all_ = f"{lost:,} of {findings.acknowledged:,} acknowledged elements are lost"
            clauses.append(": ".join(filter(None, (all_, findings.losses.clauses()))))
        if only_seen := findings.counts["lost"] - lost:
            clauses.append(f"{only_seen:,} that were only seen are lost")
    if AT_MEMBER in wrong:
        by_node = ", ".join(
            f"{count:,} at {node}" for node, count in sorted(findings.lacking.items())
        )
        clauses.append(
            f"{findings.counts[AT_MEMBER]:,} missing for good at some members ({by_node})"
        )
    others = (kind for kind in wrong if kind not in ("lost", AT_MEMBER))
    clauses += [f"{findings.counts[kind]:,} {kind}" for kind in others]
    return "; ".join(clauses)
