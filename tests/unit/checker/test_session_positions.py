"""Sessions on registers whose changes have positions: values may repeat."""

from itertools import product
from random import Random
from types import ModuleType
from typing import Any

import msgspec
import pytest

from splitbrain.checker import sessions
from splitbrain.checker.findings import Findings
from splitbrain.checker.sessions import check
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.contracts.names import NO_EPOCH
from splitbrain.history.records import PairedOperation
from tests.unit.checker.mutated import mutated
from tests.unit.checker.operations import operation

BEGINNING = (-1, -1)


def read(value: Any, start: int, process: int, **fields: Any) -> PairedOperation:
    return operation("read", None, value, start=start, end=start + 1, process=process, **fields)


def write(
    value: Any, start: int, process: int, offset: int | None, epoch: int = 1, **fields: Any
) -> PairedOperation:
    position = None if offset is None else (epoch, offset)
    end = fields.pop("end", start + 1)
    return operation(
        "write", value, start=start, end=end, process=process, position=position, **fields
    )


def judged(*operations: PairedOperation) -> CheckResult:
    return check(operations, Unlimited())


#: The value 1 comes back.
WRITES = write(1, 0, 9, 4), write(2, 2, 9, 5), write(1, 4, 9, 6), write(3, 6, 9, 7)


def test_a_value_that_comes_back_is_no_step_back() -> None:
    grows = read(None, 8, 1), read(1, 10, 1), read(2, 12, 1), read(1, 14, 1), read(3, 16, 1)
    assert judged(*WRITES, *grows).verdict is Verdict.VALID


def test_revisions_without_epochs_are_positions_too() -> None:
    writes = [write(n % 2, 2 * n, 9, n, epoch=NO_EPOCH) for n in range(3)]
    grows = read(None, 8, 1), read(0, 10, 1), read(1, 12, 1), read(0, 14, 1)
    assert judged(*writes, *grows).verdict is Verdict.VALID
    back = judged(*writes, read(1, 12, 1), read(None, 14, 1))
    assert back.verdict is Verdict.INVALID
    assert "of position 1 (index 12)" in back.reason


def test_a_read_of_what_is_over_for_good_violates_monotonic_reads() -> None:
    result = judged(*WRITES, read(3, 8, 1), read(2, 10, 1), read(2, 12, 1))
    assert [found["kind"] for found in result.violations] == ["monotonic-reads"]
    assert result.violations[0]["sentence"] == (
        "Process 1 read 3 of key a of position [1, 7] (index 8) and later read 2 of position "
        "[1, 5] (index 10)."
    )


def test_a_read_behind_ones_own_write_violates_read_your_writes() -> None:
    result = judged(*WRITES, read(2, 8, 9))
    assert [found["kind"] for found in result.violations] == ["read-your-writes"]
    assert judged(*WRITES, read(2, 8, 1)).verdict is Verdict.VALID
    (found,) = judged(*WRITES, read(None, 8, 9)).violations
    assert found["sentence"].endswith("and later read nothing as at the beginning (index 8).")


def test_a_read_with_a_position_is_held_to_it() -> None:
    reads = read(1, 8, 1, position=(1, 6)), read(1, 10, 1, position=(1, 4))
    assert judged(*WRITES, *reads).verdict is Verdict.INVALID
    assert judged(*WRITES, *reversed(reads)).verdict is Verdict.INVALID  # by index, not by order
    assert judged(*WRITES, reads[0], read(3, 10, 1, position=(1, 9))).verdict is Verdict.VALID


def test_a_later_epoch_is_newer() -> None:
    changes = write(1, 0, 9, 9, epoch=1), write(2, 2, 9, 3, epoch=2)
    assert judged(*changes, read(1, 4, 1), read(2, 6, 1)).verdict is Verdict.VALID
    assert judged(*changes, read(2, 4, 1), read(1, 6, 1)).verdict is Verdict.INVALID


def test_an_unanswered_write_may_stand_anywhere() -> None:
    unanswered = write(2, 1, 8, None, end=None)
    assert judged(*WRITES, read(3, 8, 1), unanswered, read(2, 10, 1)).verdict is Verdict.VALID


def test_a_value_that_nobody_wrote_is_not_a_matter_of_sessions() -> None:
    assert judged(*WRITES, read(3, 8, 1), read(77, 10, 1)).verdict is Verdict.VALID


def test_without_all_positions_repeated_values_are_unknown() -> None:
    assert judged(*WRITES, write(1, 8, 9, None), read(1, 10, 1)).verdict is Verdict.UNKNOWN


def test_distinct_values_are_compared_as_well() -> None:
    """Two processes that disagree: one of them contradicts the positions, whichever they are."""
    changes = write(1, 0, 8, 4), write(2, 2, 9, 5)
    pairs = read(1, 4, 1), read(2, 6, 1), read(2, 4, 2), read(1, 6, 2)
    assert judged(*changes, *pairs).verdict is Verdict.INVALID


# --- against the definition taken literally ---------------------------------------------------


def random_sessions(random: Random) -> list[PairedOperation]:
    operations: list[PairedOperation] = []
    offset = 0
    for start in range(0, 2 * random.randint(3, 9), 2):
        process = random.randint(1, 3)
        if random.random() < 0.55:
            operations.append(read(random.choice([None, 1, 2]), start, process))
            continue
        offset += random.randint(1, 2)
        change = write(random.choice([1, 2]), start, process, offset)
        if random.random() < 0.1:
            change = msgspec.structs.replace(
                change, process=100 + start, type="info", end=None, position=None
            )
        operations.append(change)
    return operations


def agrees_with_positions(operations: list[PairedOperation]) -> bool:
    """Try for every read every change that left its value; unknown ones accuse nobody."""
    for process in {o.process for o in operations}:
        mine = [o for o in operations if o.process == process and o.type == "ok"]
        choices = [choices_of(o, operations) for o in mine]
        if not any(none_goes_back(mine, chosen) for chosen in product(*choices)):
            return False
    return True


def choices_of(one: PairedOperation, operations: list[PairedOperation]) -> list[Any]:
    if one.f == "write":
        return [one.position]
    wrote = [o for o in operations if o.f == "write" and o.argument == one.result]
    found: list[Any] = [o.position for o in wrote]
    if one.result is None:
        found.append(BEGINNING)
    return found or [None]


def none_goes_back(mine: list[PairedOperation], chosen: tuple[Any, ...]) -> bool:
    """Whether each read is at or after all that its process read or wrote before it."""
    return all(
        earlier is None or position is None or earlier <= position
        for place, position in enumerate(chosen)
        if mine[place].f == "read"
        for earlier in chosen[:place]
    )


def differ(module: ModuleType, rounds: int) -> bool:
    random = Random("positions")
    both = [0, 0]
    for _ in range(rounds):
        operations = random_sessions(random)
        if not module.has_positions(operations):
            continue
        findings = Findings("sessions", Unlimited(), ("monotonic-reads", "read-your-writes"))
        module.judge_positions(operations, findings)
        expected = agrees_with_positions(operations)
        if (sum(findings.counts.values()) == 0) != expected:
            return True
        both[expected] += 1
    assert min(both) > rounds / 10
    return False


def test_the_walk_agrees_with_trying_every_choice() -> None:
    assert not differ(sessions, 3000)


MUTANTS = {
    "the last change is taken": (
        "candidates[min(first, len(candidates) - 1)]",
        "candidates[-1]",
    ),
    "the first change at all is taken": (
        "first = 0 if before is None else bisect_left(candidates, before.position)",
        "first = 0",
    ),
    "unanswered changes are forgotten": (
        "if value in changes.anywhere or not candidates:",
        "if not candidates:",
    ),
    "the beginning has no place": ("{None: [_BEGINNING]}", "{}"),
    "ones own writes are forgotten": (
        "operation.position if changed else None, READ_YOUR_WRITES",
        "None, READ_YOUR_WRITES",
    ),
    "all sessions are one": (
        "known[operation.process] = _Known(position, operation, guarantee)\n        elif",
        "known = dict.fromkeys(range(9), _Known(position, operation, guarantee))\n        elif",
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_disagrees(mutant: str) -> None:
    assert differ(mutated(sessions, *MUTANTS[mutant]), 3000)
