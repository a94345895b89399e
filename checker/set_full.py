"""What became of every element that was added to a set.

An element is *known* from the moment at which its add was acknowledged or a read showed it. It is
*lost* if a read invoked later misses it and no read that could be later still shows it; *stale*
if a read invoked after it was known misses it but it comes back; *never read* if nobody looked
after it was known; a *duplicate* if one read shows it twice; a *phantom* if a read shows it that
nobody had asked to add, or whose add certainly did not happen.

Lost elements are told with the node that acknowledged them and the fault that they fall to.

The work is linear in the total of elements read (and n log n in the number of reads), so the
presence of every element in every read is never written down. Must never call an unacknowledged
element lost that nobody has seen. Sources: Jepsen's set-full; issue 7, item 9.
"""

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from checker.evidence import describe_operation
from checker.fault_attribution import fault_spans
from checker.losses import Losses
from checker.models.model import freeze, plain
from checker.verdict import CheckResult, Verdict
from contracts.budget import Budget
from contracts.fault import FaultEvent
from history.records import PairedOperation

#: Violations of each kind that are told one by one.
NAMED_MAX = 20
#: Elements looked at between two looks at the budget.
POLL_INTERVAL = 4096

#: Kinds of violations, most telling first.
_KINDS = ("lost", "phantom", "duplicated", "stale")


class _Element:
    """What is known of one element."""

    __slots__ = ("acknowledged", "add", "asked_from", "known", "seen_by", "seen_until")

    def __init__(self, add: PairedOperation | None) -> None:
        #: Its add, the one that can explain it best; None if nobody asked for it.
        self.add = add
        #: When an add that may have happened was first invoked.
        self.asked_from = None if add is None else add.start
        self.acknowledged = add is not None and add.type == "ok"
        #: From when on every read must show it; None while nobody knows.
        self.known: int | None = add.end if self.acknowledged and add is not None else None
        #: Reads that show it.
        self.seen_by: list[PairedOperation] = []
        #: Return time of the latest of them.
        self.seen_until = -1


class _Findings(msgspec.Struct):
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


class _BudgetEnded(Exception):
    """Carries the reason."""


def check(
    operations: Iterable[PairedOperation],
    budget: Budget,
    *,
    faults: Iterable[FaultEvent] = (),
    stale_reads_allowed: bool = False,
) -> CheckResult:
    """Judge all sets of a history.

    Args:
        operations: ``add`` and ``read`` operations; others are not looked at.
        budget: polled; ``unknown`` when it ends.
        faults: what happened meanwhile; says which fault each lost element falls to.
        stale_reads_allowed: a stale read is an observation, for systems that promise no more.
    """
    adds: dict[str | None, list[PairedOperation]] = {}
    reads: dict[str | None, list[PairedOperation]] = {}
    for operation in operations:
        if operation.f == "add":
            adds.setdefault(operation.key, []).append(operation)
        elif operation.f == "read" and operation.type == "ok":
            reads.setdefault(operation.key, []).append(operation)
    losses = Losses(fault_spans(faults))
    findings = _Findings(dict.fromkeys(_KINDS, 0), {kind: [] for kind in _KINDS}, losses)
    try:
        for key in dict.fromkeys((*adds, *reads)):
            _judge_set(adds.get(key, []), reads.get(key, []), findings, budget)
    except _BudgetEnded as ended:
        return CheckResult("set-full", Verdict.UNKNOWN, f"Not finished: {ended}.")
    return _result(findings, stale_reads_allowed=stale_reads_allowed)


def _judge_set(
    adds: Sequence[PairedOperation],
    reads: Sequence[PairedOperation],
    findings: _Findings,
    budget: Budget,
) -> None:
    """Two passes over the reads: when each element was known, then where it is missing."""
    elements: dict[Hashable, _Element] = {}
    for add in adds:
        value = freeze(add.argument)
        present = elements.get(value)
        if present is None:
            elements[value] = _Element(add)
        elif _explains_better(add, present.add):
            elements[value] = better = _Element(add)
            if present.add is not None and present.add.type != "fail":
                better.asked_from = present.asked_from
    findings.reads += len(reads)
    findings.final_reads += sum(read.final for read in reads)
    for read in reads:
        for element in _distinct(read, findings, budget):
            _see(elements.setdefault(element, _Element(None)), read)
    starts = sorted(read.start for read in reads)
    for value, element in elements.items():
        findings.elements += 1
        findings.acknowledged += element.acknowledged
        _judge_element(value, element, reads, starts, findings)


def _explains_better(add: PairedOperation, present: PairedOperation | None) -> bool:
    """Of several adds of one element the first acknowledged one counts, then an open one."""
    rank = {"ok": 0, "info": 1, "fail": 2}
    return present is None or rank[add.type] < rank[present.type]


def _distinct(read: PairedOperation, findings: _Findings, budget: Budget) -> Iterator[Hashable]:
    """The elements of one read, each once; duplicates are noted."""
    seen: set[Hashable] = set()
    for count, raw in enumerate(read.result or ()):
        if count % POLL_INTERVAL == 0 and (reason := budget.exhausted()) is not None:
            raise _BudgetEnded(reason)
        element = freeze(raw)
        if element in seen:
            findings.note("duplicated", partial(_duplicated, element, read))
        else:
            seen.add(element)
            yield element


def _see(element: _Element, read: PairedOperation) -> None:
    assert read.end is not None, "a read without return has no result"
    element.seen_by.append(read)
    element.seen_until = max(element.seen_until, read.end)
    if element.known is None or read.end < element.known:
        element.known = read.end


def _judge_element(
    value: Hashable,
    element: _Element,
    reads: Sequence[PairedOperation],
    starts: Sequence[int],
    findings: _Findings,
) -> None:
    """Sort one element into lost, stale, phantom, never read, or all is well."""
    if element.seen_by:
        _judge_presence(value, element, findings)
        findings.unacknowledged_seen += not element.acknowledged
    known = element.known
    if known is None or (element.add is not None and element.add.type == "fail"):
        return
    due = len(starts) - bisect_right(starts, known)
    shown = sum(read.start > known for read in element.seen_by)
    if due == 0:
        findings.never_read += not element.seen_by
        return
    if due == shown:
        return
    lost = starts[-1] > max(known, element.seen_until)
    told = ""
    if lost:
        since = element.add.end if element.acknowledged and element.add is not None else known
        told = findings.losses.add(element.add, plain(value), reads[0].key, since)
    findings.note(
        "lost" if lost else "stale",
        partial(_missing, value, element, reads, known, lost=lost, told=told),
    )


def _judge_presence(value: Hashable, element: _Element, findings: _Findings) -> None:
    """An element that is read must have been asked for before the read returned."""
    read = min(element.seen_by, key=lambda read: read.end or 0)
    add = element.add
    if add is None:
        why = "but nobody ever asked to add it"
    elif add.type == "fail":
        why = f"but its add certainly did not happen (index {add.index}, {add.error})"
    elif read.end is not None and element.asked_from is not None and element.asked_from > read.end:
        why = f"before its add was invoked (index {add.index})"
    else:
        return
    findings.note("phantom", partial(_phantom, value, add, read, why))


def _duplicated(value: Hashable, read: PairedOperation) -> dict[str, Any]:
    return _violation(value, read.key, f"appears twice in {_read_text(read)}", [read])


def _phantom(
    value: Hashable, add: PairedOperation | None, read: PairedOperation, why: str
) -> dict[str, Any]:
    sentence = f"is shown by {_read_text(read)}, {why}"
    return _violation(value, read.key, sentence, [add, read])


def _missing(
    value: Hashable,
    element: _Element,
    reads: Sequence[PairedOperation],
    known: int,
    *,
    lost: bool,
    told: str,
) -> dict[str, Any]:
    """Name the earliest read that should show the element; of a lost one, after its last sight."""
    showing = {read.index for read in element.seen_by}
    since = max(known, element.seen_until) if lost else known
    late = [read for read in reads if read.start > since and read.index not in showing]
    read = min(late, key=lambda read: (read.start, read.index))
    then = "and from every later one" if lost else "and is back later"
    sentence = f"was {_how_known(element)}{told}, is missing from {_read_text(read)} {then}"
    return _violation(value, read.key, sentence, [element.add, read])


def _how_known(element: _Element) -> str:
    if element.add is not None and element.acknowledged and element.known == element.add.end:
        return f"acknowledged (index {element.add.index})"
    return f"seen by {len(element.seen_by):,} reads"


def _read_text(read: PairedOperation) -> str:
    on = "" if read.node is None else f" on {read.node}"
    return f"the {'final ' if read.final else ''}read of index {read.index}{on}"


def _violation(
    element: Hashable,
    key: str | None,
    sentence: str,
    operations: Sequence[PairedOperation | None],
) -> dict[str, Any]:
    of = "" if key is None else f" of set {key}"
    return {
        "key": key,
        "element": plain(element),
        "sentence": f"Element {plain(element)}{of} {sentence}.",
        "operations": [
            {"index": operation.index, "text": describe_operation(operation)}
            for operation in operations
            if operation is not None
        ],
    }


def _result(findings: _Findings, *, stale_reads_allowed: bool) -> CheckResult:
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
    wrong = [kind for kind in _KINDS if findings.counts[kind] and kind not in harmless]
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


def _counted(findings: _Findings, wrong: Sequence[str]) -> str:
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
