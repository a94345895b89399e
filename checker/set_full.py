"""Checker of sets: the fate of every added element.

An element is *known* from the moment at which its add was acknowledged or a read showed it. It is
*lost* if a read invoked later misses it and no read that could be later still shows it; *missing at
a member* if that member's final reads miss it and another one's show it, in whatever order they
came; *stale* if a read invoked after it was known misses it but it comes back; *never read* if no
read was invoked after it was known; a *duplicate* if one read shows it twice; a *phantom* if a read
shows it without a request to add it, or although its add certainly did not happen. A lost element
is only *perhaps elsewhere*, and so ``unknown``, while a member that may hold it was not read at the
end: see ``checker.evidence``.

Linear in the total of elements read (and n log n in the number of reads); no list of sightings is
kept: see ``checker.set_sightings``. Sources: Jepsen's set-full; issue 7, item 9.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

import msgspec

from splitbrain.checker.committed_logs import listed
from splitbrain.checker.evidence import describe_operation, unread
from splitbrain.checker.findings import NAMED_MAX, Poll, Undecided
from splitbrain.checker.losses import Losses
from splitbrain.checker.models.model import freeze, plain
from splitbrain.checker.set_findings import AT_MEMBER, Findings, no_findings, result_of
from splitbrain.checker.set_sightings import (
    FinalReads,
    Sightings,
    count_sightings,
    elements_of,
    first_misses,
    last_sights,
)
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.fault import FaultEvent
from splitbrain.history.fault_windows import fault_windows
from splitbrain.history.records import PairedOperation


class _Requests(msgspec.Struct):
    #: Add that explains the element best, by element.
    adds: dict[Hashable, PairedOperation]
    #: Earliest invocation of an add that may have happened, where that is another one.
    earlier: dict[Hashable, int]

    def failed(self, value: Hashable) -> bool:
        add = self.adds.get(value)
        return add is not None and add.type == "fail"


def check(
    operations: Iterable[PairedOperation],
    budget: Budget,
    *,
    faults: Iterable[FaultEvent] = (),
    members: frozenset[str] = frozenset(),
    converged: bool = True,
    stale_reads_allowed: bool = False,
) -> CheckResult:
    """Judge all sets of a history.

    Args:
        operations: others than ``add`` and ``read`` are ignored.
        budget: polled; ``unknown`` when it ends.
        faults: blamed for the lost elements.
        members: see ``Evidence.members``.
        converged: whether the nodes agreed before the final reads; one that did not may have been
            still catching up.
        stale_reads_allowed: a stale read is an observation, for systems that promise no more.
    """
    adds: dict[str | None, list[PairedOperation]] = {}
    reads: dict[str | None, list[PairedOperation]] = {}
    for operation in operations:
        if operation.f == "add":
            adds.setdefault(operation.key, []).append(operation)
        elif operation.f == "read" and operation.type == "ok":
            if not isinstance(operation.result, (list, tuple, AbstractSet, type(None))):
                reason = f"the read of index {operation.index} answered no list of elements"
                return CheckResult("set-full", Verdict.UNKNOWN, f"Not finished: {reason}.")
            reads.setdefault(operation.key, []).append(operation)
    losses = Losses(fault_windows(faults))
    findings = no_findings(losses)
    try:
        for key in dict.fromkeys((*adds, *reads)):
            _judge_set(adds.get(key, []), reads.get(key, []), members, findings, budget)
    except Undecided as ended:
        findings.unfinished = str(ended)
    harmless = ("stale",) if stale_reads_allowed else ()
    if stale_reads_allowed and not converged:
        harmless = (AT_MEMBER, *harmless)
    return result_of(findings, harmless)


def _judge_set(
    adds: Sequence[PairedOperation],
    reads: Sequence[PairedOperation],
    members: frozenset[str],
    findings: Findings,
    budget: Budget,
) -> None:
    poll = Poll(budget)
    requests = _requests(adds)
    findings.reads += len(reads)
    findings.final_reads += sum(read.final for read in reads)
    acknowledged = {
        value: add.end
        for value, add in requests.adds.items()
        if add.type == "ok" and add.end is not None
    }
    sightings = count_sightings(reads, acknowledged, poll)
    for read in sightings.repeating:
        _note_duplicates(read, findings)
    findings.acknowledged += len(acknowledged)
    for value, read in sightings.first.items():
        findings.unacknowledged_seen += value not in acknowledged
        _judge_presence(value, requests, read, findings)
    findings.elements += len(requests.adds) + sum(
        value not in requests.adds for value in sightings.first
    )
    findings.never_read += sum(
        value not in sightings.first for value in sightings.not_due if not requests.failed(value)
    )
    _judge_absence(requests, reads, members, sightings, findings, poll)


def _requests(adds: Sequence[PairedOperation]) -> _Requests:
    """Choose among several adds of one element the first acknowledged one, then an open one."""
    rank = {"ok": 0, "info": 1, "fail": 2}
    requests = _Requests({}, {})
    for add in adds:
        value = freeze(add.argument)
        present = requests.adds.setdefault(value, add)
        if rank[add.type] < rank[present.type]:
            requests.adds[value] = add
            if present.type != "fail":
                requests.earlier.setdefault(value, present.start)
    return requests


def _note_duplicates(read: PairedOperation, findings: Findings) -> None:
    seen: set[Hashable] = set()
    for element in elements_of(read):
        if element in seen:
            findings.note("duplicated", partial(_duplicated, element, read))
        seen.add(element)


def _judge_absence(
    requests: _Requests,
    reads: Sequence[PairedOperation],
    members: frozenset[str],
    sightings: Sightings,
    findings: Findings,
    poll: Poll,
) -> None:
    """Sort missing elements into kinds, and describe the first of each kind."""
    missing = [value for value in sightings.missing if not requests.failed(value)]
    if not missing:
        return
    finals = FinalReads(reads, poll)
    last_start = max(read.start for read in reads)
    seen_until = last_sights(reads, missing, poll)
    kinds: dict[str, dict[Hashable, int]] = {"lost": {}, AT_MEMBER: {}, "stale": {}}
    for value in missing:
        known = sightings.known[value]
        until = max(known, seen_until.get(value, known))
        showing, lacking = finals.sides(value, known)
        if showing and lacking:
            kinds[AT_MEMBER][value] = known
        elif last_start <= until:
            kinds["stale"][value] = known
        elif may_hold := unread(members, finals.due(known)):
            findings.perhaps_elsewhere += 1
            findings.unread_members.update(may_hold)
        else:
            # A lost element is described by a read that missed it after its last sight.
            kinds["lost"][value] = until
    named = {
        value: since for found in kinds.values() for value, since in [*found.items()][:NAMED_MAX]
    }
    misses = first_misses(reads, named, poll)
    for value, known in kinds[AT_MEMBER].items():
        showing, lacking = finals.sides(value, known)
        findings.note_at_member(
            plain(value),
            reads[0].key,
            tuple(lacking),
            partial(_at_member, value, requests.adds.get(value), sightings, showing, lacking),
        )
    for kind in ("lost", "stale"):
        for value in kinds[kind]:
            add = requests.adds.get(value)
            circumstances = ""
            if kind == "lost":
                known = sightings.known[value]
                since = known if add is None or add.type != "ok" else add.end
                circumstances = findings.losses.add(add, plain(value), reads[0].key, since)
            findings.note(
                kind,
                partial(
                    _missing, value, add, sightings, misses, kind=kind, circumstances=circumstances
                ),
            )


def _judge_presence(
    value: Hashable, requests: _Requests, read: PairedOperation, findings: Findings
) -> None:
    """Note a read element whose add was not invoked before the read returned."""
    add = requests.adds.get(value)
    if add is None:
        why = "but nobody ever asked to add it"
    elif add.type == "fail":
        why = f"but its add certainly did not happen (index {add.index}, {add.error})"
    elif read.end is not None and requests.earlier.get(value, add.start) > read.end:
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
    add: PairedOperation | None,
    sightings: Sightings,
    misses: Mapping[Hashable, PairedOperation],
    *,
    kind: str,
    circumstances: str,
) -> dict[str, Any]:
    """Describe the earliest read that should show the element; if lost, after its last sight."""
    read = misses[value]
    known = _known(value, add, sightings)
    then = "and from every later one" if kind == "lost" else "and is back later"
    sentence = f"was {known}{circumstances}, and is missing from {_read_text(read)} {then}"
    return _violation(value, read.key, sentence, [add, read])


def _at_member(
    value: Hashable,
    add: PairedOperation | None,
    sightings: Sightings,
    showing: Mapping[str, PairedOperation],
    lacking: Mapping[str, PairedOperation],
) -> dict[str, Any]:
    first = next(iter(lacking.values()))
    missed = listed([_read_text(read) for read in lacking.values()])
    show = "shows" if len(showing) == 1 else "show"
    sentence = (
        f"was {_known(value, add, sightings)}, is missing from {missed}, and "
        f"{listed([*showing])} {show} it"
    )
    found = _violation(value, first.key, sentence, [add, *lacking.values(), *showing.values()])
    return {**found, "absent_from": [*lacking], "held_by": [*showing]}


def _known(value: Hashable, add: PairedOperation | None, sightings: Sightings) -> str:
    if add is not None and add.type == "ok" and sightings.known[value] == add.end:
        return f"acknowledged (index {add.index})"
    return f"seen by {sightings.total[value]:,} reads"


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
