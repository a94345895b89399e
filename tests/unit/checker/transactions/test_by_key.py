"""Transactions judged key by key have the anomalies and the verdict of the whole history."""

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

import msgspec
import pytest

from splitbrain.checker.findings import Poll
from splitbrain.checker.transactions.by_key import (
    Together,
    findings_of,
    put_together,
    touching,
    with_keys,
)
from splitbrain.checker.transactions.check import check
from splitbrain.checker.transactions.levels import COMMIT_ORDERS, LEVELS, Kind, parts_of
from splitbrain.checker.transactions.timed import Timed
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.transactions.small_transactions import (
    random_mini_transactions,
    random_open_transactions,
    random_transactions,
    transaction,
)

HISTORIES = 120
POLL = Poll(Unlimited())
#: Of commit orders, and of orders of writes that a solver tried, which need the whole history.
_OF_THE_WHOLE = ("observed-transaction-vanishes", "fractured-read", "causality-violation", "no-")

Draw = Callable[[Random, str], list[PairedOperation]]


def of_keys(history: Sequence[PairedOperation]) -> dict[object, list[PairedOperation]]:
    found: dict[object, list[PairedOperation]] = {}
    for operation in history:
        for key, part in touching(operation):
            found.setdefault(key, []).append(part)
    return found


def judged_by_key(
    history: Sequence[PairedOperation], kind: Kind, level: str, *, exchange_seen: bool = True
) -> Together:
    keys = of_keys(history).values()
    found = [findings_of(each, kind, POLL) for each in keys]
    if exchange_seen:
        seen = {index for each in found for index in each.seen}
        found = [findings_of(each, kind, POLL, [o.index in seen for o in each]) for each in keys]
    return put_together(Timed(history), found, kind, LEVELS[level], POLL)


def counts(result: CheckResult) -> Counter[str]:
    told = Counter(each["kind"] for each in (*result.violations, *result.observations))
    return Counter({k: n for k, n in told.items() if not parts_of(k)[0].startswith(_OF_THE_WHOLE)})


@pytest.mark.parametrize(
    "draw", [random_transactions, random_open_transactions, random_mini_transactions]
)
@pytest.mark.parametrize("kind", ["list-append", "rw-register"])
def test_random_histories_are_judged_as_the_whole(draw: Draw, kind: Kind) -> None:
    random = Random(f"{draw.__name__} {kind}")
    levels = [name for name in LEVELS if name not in COMMIT_ORDERS]
    verdicts: Counter[str] = Counter()
    for _ in range(HISTORIES):
        # Where two begin at one time, the first of them is the first in its process.
        history = [
            msgspec.structs.replace(each, index=index)
            for index, each in enumerate(draw(random, kind))
        ]
        level = random.choice(levels)
        whole = check(history, Unlimited(), kind, level)
        together = judged_by_key(history, kind, level)
        assert together.anomalies == counts(whole), history
        if any(map(LEVELS[level].forbids, together.anomalies)) or together.anomalies["lost"]:
            assert whole.verdict is Verdict.INVALID
            names = [*of_keys(history)]
            few = with_keys(history, {names[key] for key in together.keys})
            judged = check(few, Unlimited(), kind, level)
            assert judged.verdict is Verdict.INVALID, history
            assert {*counts(judged)} >= {*together.anomalies}, history
            verdicts["invalid"] += 1
        elif together.undecided is None:
            nothing = whole.reason.startswith("Nothing was ever read")
            assert whole.verdict is (Verdict.UNKNOWN if nothing else Verdict.VALID), history
            verdicts["valid"] += 1
        else:
            verdicts["open"] += 1
    assert verdicts["valid"] > HISTORIES / 20
    assert verdicts["invalid"] > HISTORIES / 20


def test_a_transaction_without_an_answer_happened_for_all_keys_once_one_key_shows_it() -> None:
    history = [
        transaction(0, [["append", "x", 1], ["append", "y", 2]], 0, None, outcome="info"),
        transaction(1, [["r", "x", [1]], ["r", "y", []]], 5, 6),
        transaction(2, [["r", "y", []], ["r", "x", [1]]], 10, 12),
    ]
    judged = judged_by_key(history, "list-append", "serializable")
    assert {*judged.anomalies} == {"G-single", "G-single-realtime"}
    assert judged.anomalies == counts(check(history, Unlimited(), "list-append", "serializable"))
    # Whoever is told only of his own key does not see it.
    assert not judged_by_key(history, "list-append", "serializable", exchange_seen=False).anomalies


def test_stations_of_two_keys_are_told_apart() -> None:
    # So many readers and unread appends that their edges go through stations, in each of two keys.
    writes = [
        transaction(n, [["append", key, n]], n, n + 2_000)
        for key in ("x", "y")
        for n in ((range(20)) if key == "x" else range(20, 40))
    ]
    reads = [
        transaction(40 + n, [["r", "x", []], ["r", "y", []]], 40 + n, 3_000 + n) for n in range(20)
    ]
    late = [transaction(60, [["r", "x", [0]], ["append", "y", 60]], 60, 5_000)]
    history = [*writes, *reads, *late]
    judged = judged_by_key(history, "list-append", "strict-serializable")
    whole = check(history, Unlimited(), "list-append", "strict-serializable")
    assert judged.anomalies == counts(whole)
    assert judged.undecided is None
    assert whole.verdict is Verdict.VALID


@pytest.mark.parametrize("level", ["read-uncommitted", "snapshot-isolation", "serializable"])
def test_a_key_whose_reads_contradict_each_other_decides_nothing_of_read_uncommitted(
    level: str,
) -> None:
    history = [
        transaction(0, [["append", "x", 1]], 0, 9),
        transaction(1, [["append", "x", 2]], 1, 9),
        transaction(2, [["r", "x", [1, 2]]], 10, 12),
        transaction(3, [["r", "x", [2, 1]]], 20, 22),
    ]
    judged = judged_by_key(history, "list-append", level)
    assert judged.anomalies["incompatible-order"] == 1
    assert (judged.undecided is not None) is (level == "read-uncommitted")
