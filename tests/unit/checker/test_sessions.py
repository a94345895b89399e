from itertools import permutations
from random import Random
from typing import Any

import pytest

from splitbrain.checker import session_versions, sessions
from splitbrain.checker.sessions import check
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.operations import operation


def read(value: Any, start: int, process: int, **fields: Any) -> PairedOperation:
    return operation("read", None, value, start=start, end=start + 1, process=process, **fields)


def write(value: Any, start: int, process: int, **fields: Any) -> PairedOperation:
    end = fields.pop("end", start + 1)
    return operation("write", value, start=start, end=end, process=process, **fields)


def cas(old: Any, new: Any, start: int, process: int) -> PairedOperation:
    done = [old, new, True]
    return operation("cas", [old, new], done, start=start, end=start + 1, process=process)


def add(value: Any, start: int, process: int, **fields: Any) -> PairedOperation:
    return operation("add", value, start=start, end=start + 1, process=process, **fields)


def judged(*operations: PairedOperation) -> CheckResult:
    return check(operations, Unlimited())


def kinds(*operations: PairedOperation) -> list[str]:
    return [found["kind"] for found in judged(*operations).violations]


WRITES = write(1, 0, 9), write(2, 2, 9)


def test_stale_reads_that_never_go_back_are_valid() -> None:
    """Not linearizable: both processes read an old value after a newer one was acknowledged."""
    stale = read(None, 4, 1), read(1, 6, 1), read(1, 8, 2), read(2, 10, 2), read(2, 12, 9)
    assert judged(*WRITES, *stale).verdict is Verdict.VALID


def test_a_process_that_reads_an_older_version_again_violates_monotonic_reads() -> None:
    result = judged(*WRITES, read(2, 4, 1), read(1, 6, 1), read(2, 8, 1))
    assert [found["kind"] for found in result.violations] == ["monotonic-reads"]
    sentence = result.violations[0]["sentence"]
    assert "Process 1 read 2 (index 4) and later read 1 (index 6)" in sentence
    assert "Process 1 read 1 (index 6) and later read 2 (index 8)" in sentence
    assert sentence.endswith("No order of the versions of key a allows all of these.")


def test_two_processes_that_disagree_on_the_order_violate_monotonic_reads() -> None:
    apart = read(1, 4, 1), read(2, 6, 1), read(2, 4, 2), read(1, 6, 2)
    assert kinds(*WRITES, *apart) == ["monotonic-reads"]


def test_reading_nothing_after_something_goes_back_to_the_beginning() -> None:
    result = judged(*WRITES, read(2, 4, 1), read(None, 6, 1))
    (found,) = result.violations
    assert found["sentence"] == (
        "Process 1 read 2 (index 4) and later read nothing (index 6). "
        "No order of the versions of key a allows that."
    )


def test_a_process_that_does_not_read_what_it_wrote_violates_read_your_writes() -> None:
    assert kinds(write(1, 0, 1), read(None, 2, 1)) == ["read-your-writes"]
    # The process itself read 1 as something older than its own 2.
    assert kinds(write(1, 0, 9), read(1, 2, 1), write(2, 4, 1), read(1, 6, 1)) == []
    circle = read(1, 2, 1), cas(1, 2, 4, 1), read(1, 6, 1)
    assert kinds(write(1, 0, 9), *circle) == ["read-your-writes"]


def test_reads_alone_tell_versions_or_elements_by_their_answers() -> None:
    assert kinds(read(1, 0, 1), read(2, 2, 1), read(1, 4, 1)) == ["monotonic-reads"]
    assert kinds(read([1], 0, 1), read([1, 2], 2, 1), read([2], 4, 1)) == ["monotonic-reads"]


def test_what_a_cas_replaced_is_older() -> None:
    swapped = write(1, 0, 9), cas(1, 2, 2, 9), read(2, 4, 1), read(1, 6, 1)
    assert kinds(*swapped) == ["monotonic-reads"]


def test_a_long_circle_is_told_in_few_words() -> None:
    count = 40
    writes = [write(n, n, 99) for n in range(count)]
    pairs = [read((n + step) % count, 100 + n + step, n) for n in range(count) for step in (0, 1)]
    result = judged(*writes, *pairs)
    (found,) = result.violations
    assert len(found["sentence"]) < 1000
    assert "And 34 more." in found["sentence"]


def test_a_violation_on_one_key_stands_beside_a_key_that_cannot_be_judged() -> None:
    unclear = write(1, 0, 1, key="b"), write(1, 2, 1, key="b")
    result = judged(*unclear, write(1, 4, 1), read(None, 6, 1))
    assert result.verdict is Verdict.INVALID
    assert result.figures["keys-not-judged"] == 1


# --- against the definition taken literally ---------------------------------------------------


def random_sessions(random: Random) -> list[PairedOperation]:
    """Some processes that write, replace and read versions 1, 2, ... of one register."""
    fresh = 0
    operations: list[PairedOperation] = []
    for start in range(0, 2 * random.randint(3, 8), 2):
        process = random.randint(1, 3)
        f = random.choice(("read", "read", "write", "cas"))
        if f == "read":
            operations.append(read(random.choice([None, 1, 2, 3]), start, process))
            continue
        fresh += 1
        if f == "write":
            operations.append(write(fresh, start, process))
        else:
            replaced = random.choice([value for value in (None, 7, 1, 2, 3) if value != fresh])
            operations.append(cas(replaced, fresh, start, process))
    return operations


def some_order_fits(operations: list[PairedOperation]) -> bool:
    """Try every order of the versions, the beginning always being the oldest."""
    versions = {o.result for o in operations if o.f == "read"} | {
        value for o in operations if o.f != "read" for value in (*flat(o.argument),)
    }
    return any(
        fits(operations, {version: age for age, version in enumerate((None, *order))})
        for order in permutations(versions - {None})
    )


def flat(argument: Any) -> list[Any]:
    return argument if isinstance(argument, list) else [argument]


def fits(operations: list[PairedOperation], age: dict[Any, int]) -> bool:
    newest: dict[int, int] = {}
    for o in operations:
        if o.f == "read":
            if age[o.result] < newest.get(o.process, 0):
                return False
            newest[o.process] = age[o.result]
            continue
        if o.f == "cas" and age[o.argument[0]] >= age[o.argument[1]]:
            return False
        written = age[flat(o.argument)[-1]]
        newest[o.process] = max(newest.get(o.process, 0), written)
    return True


def test_circles_agree_with_trying_every_order_of_the_versions() -> None:
    random = Random("sessions")
    verdicts = []
    for _ in range(1500):
        operations = random_sessions(random)
        expected = some_order_fits(operations)
        found = judged(*operations)
        assert bool(found.violations) != expected, operations
        verdicts.append(expected)
    assert 0.2 < sum(verdicts) / len(verdicts) < 0.8


# --- mutants ----------------------------------------------------------------------------------


MUTANTS = {
    "circles are not looked for": (session_versions, "_edges_in_circles", lambda _: []),
    "every edge is taken away": (session_versions, "_order_of", lambda *_: {}),
    "versions are not judged": (sessions, "judge_versions", lambda *_: None),
    "sets are not judged": (sessions, "_judge_set", lambda *_: None),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_misses_a_planted_violation(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = (
        (*WRITES, read(2, 4, 1), read(1, 6, 1), read(2, 8, 1)),
        (write(1, 0, 1), read(None, 2, 1)),
        (add(1, 0, 1), read([], 2, 1)),
    )
    assert all(kinds(*one) for one in planted)
    monkeypatch.setattr(*MUTANTS[mutant])
    assert not all(kinds(*one) for one in planted)
