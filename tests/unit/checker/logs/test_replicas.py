"""Replicas on disks: each rule convicts, its neighbour does not, and each mutant is told apart."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.logs import replicas
from splitbrain.checker.names import KINDS
from splitbrain.checker.registry import checker_named
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Budget, Unlimited
from splitbrain.contracts.committed import RecordNumber, ReplicaLog, ReplicaRecord
from splitbrain.history.records import PairedOperation
from tests.unit.checker.mutated import mutated

Check = Callable[[Evidence, Budget], CheckResult]


def record(offset: int, value: Any = "v", epoch: int = 0, **more: Any) -> ReplicaRecord:
    more.setdefault("digest", f"{offset}/{epoch}/{value}")
    return ReplicaRecord(offset=offset, epoch=epoch, value=value, **more)


def numbered(offset: int, number: int, epoch: int = 0, producer: int = 7) -> ReplicaRecord:
    return record(offset, offset, sequence=RecordNumber(producer, epoch, number))


def replica(
    node: str, *records: ReplicaRecord, committed: int | None = None, start: int = 0
) -> ReplicaLog:
    end = records[-1].offset + 1 if records else start
    noted = end if committed is None else committed
    return ReplicaLog(node, "0", start, end, noted, records)


def final_read(values: Mapping[int, Any]) -> PairedOperation:
    shown = [[offset, value] for offset, value in values.items()]
    answer = [["poll", {"0": shown}, {"0": max(values) + 1}]]
    return PairedOperation(
        index=9,
        process=0,
        f="poll",
        key=None,
        argument=[["poll"]],
        result=answer,
        type="ok",
        start=1,
        end=2,
        final=True,
    )


def evidence(*logs: ReplicaLog, converged: bool = True, reads: Any = ()) -> Evidence:
    return Evidence(
        operations=reads,
        replica_logs={"0": {log.node: log for log in logs}} if logs else {},
        converged=converged,
    )


A, B, C = (record(offset, value) for offset, value in enumerate("abc"))
OTHER_B = record(1, "x")
NEWER_B = record(1, "b", 1, digest=B.digest)

#: Evidence, the kinds of violations found, and the verdict without any.
CASES: dict[str, tuple[Evidence, set[str], Verdict]] = {
    "equal": (evidence(replica("n1", A, B), replica("n2", A, B)), set(), Verdict.VALID),
    "one is behind": (evidence(replica("n1", A, B), replica("n2", A)), set(), Verdict.VALID),
    "one begins later": (
        evidence(replica("n1", A, B), replica("n2", B, start=1)),
        set(),
        Verdict.VALID,
    ),
    "another value": (
        evidence(replica("n1", A, B, C), replica("n2", A, OTHER_B, C)),
        {"different-records"},
        Verdict.INVALID,
    ),
    "another epoch of the same bytes": (
        evidence(replica("n1", A, B), replica("n2", A, NEWER_B)),
        {"different-records"},
        Verdict.INVALID,
    ),
    "another value that was not committed": (
        evidence(replica("n1", A, B, committed=1), replica("n2", A, OTHER_B), converged=False),
        set(),
        Verdict.VALID,
    ),
    "another value that both had committed": (
        evidence(replica("n1", A, B), replica("n2", A, OTHER_B), converged=False),
        {"different-records"},
        Verdict.INVALID,
    ),
    "noted as committed beyond its end": (
        evidence(replica("n1", A, B, committed=5), replica("n2", A, B, C), converged=False),
        set(),
        Verdict.VALID,
    ),
    "a hole": (
        evidence(replica("n1", A, B, C), replica("n2", A, C)),
        {"record-missing"},
        Verdict.INVALID,
    ),
    "a hole in both, as a transaction's marker that was cleaned away": (
        evidence(replica("n1", A, C), replica("n2", A, C)),
        set(),
        Verdict.VALID,
    ),
    "as final reads showed": (
        evidence(replica("n1", A, B), replica("n2", A, B), reads=(final_read({0: "a", 1: "b"}),)),
        set(),
        Verdict.VALID,
    ),
    "as final reads showed, lists": (
        evidence(
            replica("n1", record(0, [1, "a"])),
            replica("n2", record(0, [1, "a"])),
            reads=(final_read({0: [1, "a"]}),),
        ),
        set(),
        Verdict.VALID,
    ),
    "unlike a final read": (
        evidence(replica("n1", A, B), replica("n2", A, B), reads=(final_read({1: "x"}),)),
        {"unlike-final-read"},
        Verdict.INVALID,
    ),
    "unlike a final read of nodes that did not converge": (
        evidence(
            replica("n1", A, B),
            replica("n2", A, B),
            reads=(final_read({1: "x"}),),
            converged=False,
        ),
        set(),
        Verdict.VALID,
    ),
    "a final read of what no replica has yet": (
        evidence(replica("n1", A), replica("n2", A), reads=(final_read({1: "b"}),)),
        set(),
        Verdict.VALID,
    ),
    "an epoch that goes back": (
        evidence(replica("n1", record(0, epoch=2), record(1, epoch=1))),
        {"epoch-goes-back"},
        Verdict.INVALID,
    ),
    "an epoch that stays, and goes on": (
        evidence(replica("n1", record(0), record(1), record(2, epoch=2))),
        set(),
        Verdict.UNKNOWN,
    ),
    "numbers in order, of two producers, and from 0 again in a new epoch": (
        evidence(
            replica(
                "n1",
                numbered(0, 0),
                numbered(1, 0, producer=8),
                numbered(2, 1),
                numbered(3, 0, epoch=1),
                numbered(4, 1, producer=8),
            )
        ),
        set(),
        Verdict.UNKNOWN,
    ),
    "a number twice": (
        evidence(replica("n1", numbered(0, 0), numbered(1, 0))),
        {"number-out-of-order"},
        Verdict.INVALID,
    ),
    "a number left out": (
        evidence(replica("n1", numbered(0, 0), numbered(1, 2))),
        {"number-out-of-order"},
        Verdict.INVALID,
    ),
    "a number of an earlier epoch": (
        evidence(replica("n1", numbered(0, 0, epoch=1), numbered(1, 1, epoch=0))),
        {"number-out-of-order"},
        Verdict.INVALID,
    ),
    "the last number and 0": (
        evidence(replica("n1", numbered(0, 2**31 - 1), numbered(1, 0))),
        set(),
        Verdict.UNKNOWN,
    ),
    "a record between that numbers nothing": (
        evidence(replica("n1", numbered(0, 0), record(1), numbered(2, 1))),
        set(),
        Verdict.UNKNOWN,
    ),
    "no replica": (evidence(), set(), Verdict.UNKNOWN),
    "replicas with nothing in common": (
        evidence(replica("n1", A), replica("n2", B, start=1)),
        set(),
        Verdict.UNKNOWN,
    ),
}

MUTANTS = {
    "digests are not compared": ("(each.epoch, each.digest)", "(each.epoch, '')"),
    "epochs are not compared": ("(each.epoch, each.digest)", "(0, each.digest)"),
    "tails are compared": ("min(one.committed_end, one.end_offset)", "one.end_offset"),
    "an end is believed": ("min(one.committed_end, one.end_offset)", "one.committed_end"),
    "before the nodes converge nothing is compared": (
        "node: one.end_offset if converged else min(one.committed_end, one.end_offset)",
        "node: one.end_offset if converged else 0",
    ),
    "what comes before a start is missed": ("if one.start_offset <= offset <", "if offset <"),
    "what comes behind an end is missed": ("<= offset < ends[node]", "<= offset"),
    "holes are no matter": ("if there and (lacking :=", "if not there and (lacking :="),
    "reads are no matter": ("if each is None or hashable(each.value) != value", "if each is None"),
    "reads count before the nodes converge": (
        "_final_reads(evidence.operations) if evidence.converged else {}",
        "_final_reads(evidence.operations)",
    ),
    "epochs go anywhere": ("if after.epoch < before.epoch:", "if False:"),
    "epochs always rise": ("if after.epoch < before.epoch:", "if after.epoch <= before.epoch:"),
    "a new epoch goes on": ("if known is None or mark.epoch > known[0]:", "if known is None:"),
    "producers are one": ("known = last.get(mark.producer)", "known = last.get(7)"),
    "numbers may repeat": ("(known[1] + 1) % _NUMBERS)", "mark.number)"),
    "numbers end": ("(known[1] + 1) % _NUMBERS)", "known[1] + 1)"),
    "epochs of producers are no matter": (
        "if (mark.epoch, mark.number) != (known[0], (known",
        "if (known[0], mark.number) != (known[0], (known",
    ),
    "without a replica all is well": (
        'return "No replica was read from a disk."',
        "return None",
    ),
    "nothing in common is well": (
        'return "No two replicas have a record at one offset that both had to have."',
        "return None",
    ),
}


def kinds_and_verdict(check: Check, given: Evidence) -> tuple[set[str], Verdict]:
    found = check(given, Unlimited())
    return {violation["kind"] for violation in found.violations}, found.verdict


@pytest.mark.parametrize("name", CASES)
def test_replicas_are_judged(name: str) -> None:
    given, kinds, verdict = CASES[name]
    assert kinds_and_verdict(checker_named("replicas"), given) == (kinds, verdict)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_told_apart(name: str) -> None:
    wrong: Check = mutated(replicas, *MUTANTS[name]).check
    assert any(
        kinds_and_verdict(wrong, given) != (kinds, verdict)
        for given, kinds, verdict in CASES.values()
    )


def test_every_kind_has_a_case() -> None:
    found = {kind for _, kinds, _ in CASES.values() for kind in kinds}
    assert found == set(KINDS["replicas"]) == set(replicas.KINDS)


def test_a_violation_says_who_has_what_where() -> None:
    given = evidence(replica("n1", A, B), replica("n2", A, OTHER_B), replica("n3", A, B))
    (violation,) = checker_named("replicas")(given, Unlimited()).violations
    assert violation["sentence"] == (
        "Log 0, offset 1: n1 and n3 have 'b' of epoch 0 and n2 has 'x' of epoch 0."
    )
    assert (violation["log"], violation["offset"]) == ("0", 1)


def test_a_budget_that_ends_leaves_it_open() -> None:
    class Ended:
        def exhausted(self) -> str | None:
            return "out of time"

    given = evidence(replica("n1", A), replica("n2", A))
    found = checker_named("replicas")(given, Ended())
    assert (found.verdict, found.reason) == (Verdict.UNKNOWN, "Not finished: out of time.")
