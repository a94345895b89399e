"""Checker of the replicas of each log as they lie on the disks of stopped nodes.

Once the nodes converged all replicas were in sync, so that whatever two of them both have, up to
the end of the shorter one, is byte for byte the same, and is what final reads showed. Before that
only records that both had noted as committed are. No other replica is needed for the rest: leaders'
epochs never go back along one, and a producer that numbers its records has each number once, in
order. Records at or behind the end of a replica convict nobody: a tail may be on its way.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from splitbrain.checker.committed_logs import listed
from splitbrain.checker.evidence import Evidence
from splitbrain.checker.findings import NAMED_MAX, Poll, Undecided
from splitbrain.checker.logs.parts import POLL, Polled, parts_of
from splitbrain.checker.transactions.micro_operations import hashable
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.committed import ReplicaLog, ReplicaRecord
from splitbrain.contracts.words import counted
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import shown

NAME: Final = "replicas"
#: Most telling first.
KINDS: Final = (
    *("different-records", "record-missing", "unlike-final-read"),
    *("epoch-goes-back", "number-out-of-order"),
)
#: Behind the last number of an epoch comes 0 again.
_NUMBERS: Final = 1 << 31

#: Replicas of one log by their nodes.
_Replicas = Mapping[str, ReplicaLog]
#: Kind, offset, nodes and sentence.
_Found = tuple[str, int, Sequence[str], str]


def check(evidence: Evidence, budget: Budget) -> CheckResult:
    """Judge every replica that was dumped."""
    counts: Counter[str] = Counter()
    named: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    poll, unfinished, compared = Poll(budget), "", 0
    logs = evidence.replica_logs
    try:
        shown_at_the_end = _final_reads(evidence.operations) if evidence.converged else {}
        for log in sorted(logs):
            replicas = {node: logs[log][node] for node in sorted(logs[log])}
            shared = _shared(replicas, converged=evidence.converged)
            compared += sum(len(row) > 1 for row in shared.values())
            found = (
                _differing(shared, replicas, poll),
                _unlike_reads(shared, shown_at_the_end.get(log, {})),
                _out_of_order(replicas, poll),
            )
            for kind, offset, nodes, sentence in (each for some in found for each in some):
                counts[kind] += 1
                if len(named[kind]) < NAMED_MAX:
                    named[kind].append(
                        {
                            "kind": kind,
                            "log": log,
                            "offset": offset,
                            "nodes": list(nodes),
                            "sentence": f"Log {log}, offset {offset}: {sentence}.",
                        }
                    )
    except Undecided as ended:
        unfinished = f"Not finished: {ended}."
    figures = {
        "logs": len(logs),
        "replicas": sum(map(len, logs.values())),
        "records": sum(len(one.records) for row in logs.values() for one in row.values()),
        "offsets-compared": compared,
        **{kind: counts[kind] for kind in KINDS},
    }
    violations = tuple(row for kind in KINDS for row in named[kind])
    undecided = unfinished or (None if compared else _lack(evidence))
    if violations:
        numbers = "; ".join(f"{counts[kind]:,} {kind}" for kind in KINDS if counts[kind])
        reason = f"{numbers}: {violations[0]['sentence']} {unfinished}".rstrip()
        return CheckResult(NAME, Verdict.INVALID, reason, figures, violations, undecided=undecided)
    if undecided:
        return CheckResult(NAME, Verdict.UNKNOWN, undecided, figures)
    reason = (
        f"{counted(figures['replicas'], 'replica')} of {counted(len(logs), 'log')} have equal "
        f"records at each of {counted(compared, 'offset')} that two of them have."
    )
    return CheckResult(NAME, Verdict.VALID, reason, figures)


def _lack(evidence: Evidence) -> str:
    if not evidence.replica_logs:
        return "No replica was read from a disk."
    return "No two replicas have a record at one offset that both had to have."


def _shared(
    replicas: _Replicas, *, converged: bool
) -> Mapping[int, Mapping[str, ReplicaRecord | None]]:
    """Return what the replicas have at each offset that they had to agree on, None: nothing."""
    ends = {
        node: one.end_offset if converged else min(one.committed_end, one.end_offset)
        for node, one in replicas.items()
    }
    by_offset = {
        node: {each.offset: each for each in one.records} for node, one in replicas.items()
    }
    offsets = sorted({offset for records in by_offset.values() for offset in records})
    return {
        offset: {
            node: by_offset[node].get(offset)
            for node, one in replicas.items()
            if one.start_offset <= offset < ends[node]
        }
        for offset in offsets
    }


def _differing(
    shared: Mapping[int, Mapping[str, ReplicaRecord | None]], replicas: _Replicas, poll: Poll
) -> Iterator[_Found]:
    for offset, row in shared.items():
        poll(len(replicas))
        there = {node: each for node, each in row.items() if each is not None}
        groups: dict[tuple[int, str], list[str]] = {}
        for node, each in there.items():
            groups.setdefault((each.epoch, each.digest), []).append(node)
        if len(groups) > 1:
            clauses = [_held(nodes, there[nodes[0]]) for nodes in groups.values()]
            yield "different-records", offset, [*there], listed(clauses)
        if there and (lacking := [node for node, each in row.items() if each is None]):
            first = next(iter(there))
            sentence = f"{_held([*there], there[first])}, {listed(lacking)} none"
            yield "record-missing", offset, lacking, sentence


def _unlike_reads(
    shared: Mapping[int, Mapping[str, ReplicaRecord | None]],
    shown_at_the_end: Mapping[int, tuple[Any, PairedOperation]],
) -> Iterator[_Found]:
    for offset, (value, read) in shown_at_the_end.items():
        row = shared.get(offset, {})
        others = [
            node for node, each in row.items() if each is None or hashable(each.value) != value
        ]
        if others:
            record = row[others[0]]
            there = "nothing" if record is None else shown(record.value)
            sentence = f"a final read (index {read.index}) showed {shown(value)}, and "
            yield "unlike-final-read", offset, others, f"{sentence}{_have(others)} {there}"


def _out_of_order(replicas: _Replicas, poll: Poll) -> Iterator[_Found]:
    """Yield what a replica says against itself, once for all replicas that say it."""
    found: dict[tuple[str, int, str], list[str]] = {}
    for node, one in replicas.items():
        poll(len(one.records))
        for kind, offset, sentence in _of_one(one.records):
            found.setdefault((kind, offset, sentence), []).append(node)
    for (kind, offset, sentence), nodes in found.items():
        yield kind, offset, nodes, f"at {listed(nodes)} {sentence}"


def _of_one(records: Sequence[ReplicaRecord]) -> Iterator[tuple[str, int, str]]:
    for before, after in pairwise(records):
        if after.epoch < before.epoch:
            sentence = f"a record of epoch {after.epoch} follows one of epoch {before.epoch}"
            yield "epoch-goes-back", after.offset, sentence
    last: dict[int, tuple[int, int]] = {}
    for record in records:
        if (mark := record.sequence) is None:
            continue
        known = last.get(mark.producer)
        last[mark.producer] = mark.epoch, mark.number
        if known is None or mark.epoch > known[0]:
            continue
        if (mark.epoch, mark.number) != (known[0], (known[1] + 1) % _NUMBERS):
            sentence = (
                f"number {mark.number} of epoch {mark.epoch} follows number {known[1]} of epoch "
                f"{known[0]} of producer {mark.producer}"
            )
            yield "number-out-of-order", record.offset, sentence


def _final_reads(
    operations: Iterable[PairedOperation],
) -> dict[str, dict[int, tuple[Any, PairedOperation]]]:
    """Return what final reads showed, by log and offset, each with the first that did."""
    found: dict[str, dict[int, tuple[Any, PairedOperation]]] = {}
    for operation in operations:
        if operation.f == POLL and operation.final and operation.type == "ok":
            for part in parts_of(operation):
                if isinstance(part, Polled):
                    of_log = found.setdefault(part.key, {})
                    for offset, value in part.records:
                        of_log.setdefault(offset, (value, operation))
    return found


def _held(nodes: Sequence[str], record: ReplicaRecord) -> str:
    what = "a record of the system's" if record.value is None else shown(record.value)
    return f"{_have(nodes)} {what} of epoch {record.epoch}"


def _have(nodes: Sequence[str]) -> str:
    return f"{listed(nodes)} {'has' if len(nodes) == 1 else 'have'}"
