"""Transactions over keys that are born and given up all the time."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.operations import Completion
from splitbrain.workloads.transactions import LANES, LEVELS, PARTS_MAX, LaneKeys
from splitbrain.workloads.workload import Workload, workload

SLOTS = 10
ROUNDS = 600


def made(name: str, **options: str) -> Workload:
    return workload(name, seed=5, slots=SLOTS, readers=frozenset(), options=options)


def transactions(source: Workload, rounds: int = ROUNDS) -> Iterator[list[list[Any]]]:
    return (source.operation(slot, n).value for n in range(rounds) for slot in range(SLOTS))


@pytest.mark.parametrize(
    ("name", "options", "writes"),
    [("list-append", {}, "append"), ("rw-register", {"mini": "no"}, "w")],
)
def test_a_transaction_has_one_to_eight_parts_and_half_of_them_read(
    name: str, options: dict[str, str], writes: str
) -> None:
    asked = list(transactions(made(name, **options)))
    lengths = Counter(map(len, asked))
    assert sorted(lengths) == list(range(1, PARTS_MAX + 1))
    assert min(lengths.values()) > 0.8 * len(asked) / PARTS_MAX
    kinds = Counter(kind for parts in asked for kind, _, _ in parts)
    assert kinds.keys() == {"r", writes}
    assert 0.9 < kinds["r"] / kinds[writes] < 1.1
    assert all((value is None) == (kind == "r") for parts in asked for kind, _, value in parts)


@pytest.mark.parametrize("options", [{}, {"mini": "no"}])
def test_lanes_are_drawn_by_a_zipf_law(options: dict[str, str]) -> None:
    asked = transactions(made("rw-register", **options))
    lanes = Counter(
        key.partition("-")[0] for parts in asked for key in {key for _, key, _ in parts}
    )
    counts = [lanes[str(lane)] for lane in range(LANES)]
    assert counts[:4] == sorted(counts[:4], reverse=True)
    assert counts[0] > 1.3 * counts[1]
    assert counts[0] > 4 * max(counts[-2:])
    assert min(counts) > 0


@pytest.mark.parametrize(
    ("name", "options"),
    [("list-append", {}), ("rw-register", {}), ("rw-register", {"mini": "no"})],
)
def test_a_key_is_given_up_after_about_the_writes_that_are_drawn_for_it(
    name: str, options: dict[str, str]
) -> None:
    asked = transactions(made(name, **options))
    written = Counter(key for parts in asked for kind, key, _ in parts if kind != "r")
    counts = sorted(written.values())
    # Neither all alike nor of one size: few, and many.
    assert counts[len(counts) // 10] < 8
    assert counts[-len(counts) // 10] > 40
    assert len(set(counts)) > 20
    keys = LaneKeys(5, 1.0)
    busiest = [written[f"0-{generation}"] for generation in range(10)]
    drawn = [keys.writes_drawn(0, generation) for generation in range(10)]
    assert 0.7 < sum(busiest) / sum(drawn) < 1.4
    assert busiest.index(max(busiest)) in (drawn.index(max(drawn)), drawn.index(sorted(drawn)[-2]))


def test_keys_are_born_all_the_time_and_none_comes_back() -> None:
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    source = made("list-append")
    for n in range(ROUNDS):
        for slot in range(SLOTS):
            for _, key, _ in source.operation(slot, n).value:
                first.setdefault(key, n)
                last[key] = n
    births = Counter(n // 60 for n in first.values())
    assert min(births[part] for part in range(10)) >= 10
    for key in first:
        lane, generation = key.split("-")
        successor = f"{lane}-{int(generation) + 1}"
        assert successor not in first or last[key] < first[successor]


def test_seeds_have_lifetimes_of_their_own() -> None:
    drawn = [[LaneKeys(seed, 9.0).writes_drawn(0, g) for g in range(20)] for seed in (1, 2)]
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize("name", ["list-append", "long-fork", "rw-register"])
def test_final_reads_read_each_key_once_and_nothing_else(name: str) -> None:
    source = made(name)
    used = {key for parts in transactions(source) for _, key, _ in parts}
    reads = source.final_reads()
    parts = [part for read in reads for part in read.value]
    assert Counter(key for _, key, _ in parts) == Counter(used)
    assert {(kind, value) for kind, _, value in parts} == {("r", None)}
    assert max(len(read.value) for read in reads) == PARTS_MAX


def test_no_outcome_moves_a_key() -> None:
    source = made("list-append")
    before = source.operation(0, 0)
    for _ in range(100):
        source.completed(before, Completion("info", error="timed-out"))
    assert source.operation(0, 0) == before


def test_of_mini_transactions_each_write_follows_a_read_of_its_key() -> None:
    asked = list(transactions(made("rw-register")))
    shapes = Counter("".join(kind for kind, _, _ in parts) for parts in asked)
    assert set(shapes) == {"r", "rr", "rw", "rrw", "rwr", "rwrw", "rrww"}
    for parts in asked:
        seen: set[str] = set()
        for kind, key, _ in parts:
            assert (key in seen) == (kind == "w")
            seen.add(key)
        assert len({key for kind, key, _ in parts if kind == "w"}) == "".join(
            kind for kind, _, _ in parts
        ).count("w")


def test_each_register_of_a_group_is_written_once_and_the_others_read_all_of_it() -> None:
    asked = list(transactions(made("long-fork"), 40))
    writes = [parts for parts in asked if parts[0][0] == "w"]
    assert all(len(parts) == 1 for parts in writes)
    written = Counter(key for ((_, key, _),) in writes)
    assert set(written.values()) == {1}
    reads = [parts for parts in asked if parts[0][0] == "r"]
    assert 2 * len(writes) < len(reads) < 4 * len(writes)
    groups = {frozenset(key for _, key, _ in parts) for parts in reads}
    assert all(not a & b for a in groups for b in groups if a is not b)
    assert {key for group in groups for key in group} == {*written}
    # In every order, and amid the writes: neither all before nor all after.
    assert len({tuple(key.rpartition("-")[2] for _, key, _ in parts) for parts in reads}) > 10
    amid = 0
    for group in groups:
        kinds = [parts[0][0] for parts in asked if {key for _, key, _ in parts} <= group]
        amid += kinds.index("r") < len(kinds) - 1 - kinds[::-1].index("w")
    assert amid > 0.8 * len(groups)


def test_pairs_of_lists_are_new_and_a_few_slots_change_and_look_for_them() -> None:
    source = made("list-append", keys="pairs")
    asked = list(transactions(source, 40))
    shapes = Counter(tuple(kind for kind, _, _ in parts) for parts in asked)
    assert sorted(shapes) == [("append",), ("append", "r")]
    assert min(shapes.values()) > 0.4 * len(asked)
    slots_of: dict[str, set[int]] = {}
    rounds_of: dict[str, set[int]] = {}
    for place, parts in enumerate(asked):
        (pair,) = {key.rpartition("-")[0] for _, key, _ in parts}
        assert len({key for _, key, _ in parts}) == len(parts)
        n, slot = divmod(place, SLOTS)
        slots_of.setdefault(pair, set()).add(slot)
        rounds_of.setdefault(pair, set()).add(n)
    assert max(map(len, slots_of.values())) == 4
    assert set(map(len, rounds_of.values())) == {1}
    appended = [value for parts in asked for kind, _, value in parts if kind == "append"]
    assert len(set(appended)) == len(appended)
    used = {key for parts in asked for _, key, _ in parts}
    finals = [key for read in source.final_reads() for _, key, _ in read.value]
    assert used <= set(finals)
    assert len(set(finals)) == len(finals)


def test_the_level_chooses_the_checker_and_is_kept() -> None:
    for level in LEVELS:
        source = made("list-append", level=level)
        assert source.checkers == (f"transactions:list-append:{level}", "split-brain")
        assert source.options() == {"level": level, "keys": "lanes"}
    assert made("rw-register").options() == {"level": "serializable", "mini": "yes"}
    assert made("long-fork").checkers[0] == "transactions:rw-register:serializable"
    assert len(set(LEVELS)) == len(LEVELS) == 21


def test_levels_and_options_that_do_not_exist_are_refused() -> None:
    with pytest.raises(UsageError, match="'level' of the workload 'list-append' cannot be 'pl-3'"):
        made("list-append", level="pl-3")
    with pytest.raises(UsageError, match="no option 'mini'"):
        made("list-append", mini="yes")


def test_rows_are_inserted_once_and_deleted_once_at_most_by_another_slot() -> None:
    source = made("rows")
    done: dict[str, dict[int, tuple[str, int, int]]] = {"insert": {}, "delete": {}}
    kinds: Counter[str] = Counter()
    for n in range(ROUNDS):
        for slot in range(SLOTS):
            for kind, group, row in source.operation(slot, n).value:
                kinds[kind] += 1
                if kind != "range":
                    assert row not in done[kind]
                    done[kind][row] = (group, slot, n)
    assert 0.4 < kinds["range"] / kinds.total() < 0.7
    assert 0.4 < kinds["delete"] / kinds["insert"] < 0.8
    lags = Counter[int]()
    for row, (group, slot, n) in done["delete"].items():
        inserted_to, inserter, then = done["insert"][row]
        assert (inserted_to, (inserter + 1) % SLOTS) == (group, slot)
        lags[n - then] += 1
    assert sorted(lags) == [1, 2, 3]
    used = {group for group, _, _ in done["insert"].values()}
    parts = [part for read in source.final_reads() for part in read.value]
    assert used <= {group for _, group, _ in parts}
    assert len({group for _, group, _ in parts}) == len(parts)
    assert {(kind, row) for kind, _, row in parts} == {("range", None)}


def test_groups_of_rows_are_given_up_after_about_the_changes_that_are_drawn_for_them() -> None:
    changed = Counter(
        group for parts in transactions(made("rows")) for kind, group, _ in parts if kind != "range"
    )
    keys = LaneKeys(5, 1.0)
    busiest = [changed[f"0-{generation}"] for generation in range(10)]
    drawn = [keys.writes_drawn(0, generation) for generation in range(10)]
    assert 0.7 < sum(busiest) / sum(drawn) < 1.4


def test_rows_have_no_level_of_commit_orders() -> None:
    with pytest.raises(UsageError, match="'level' of the workload 'rows' cannot be 'causal'"):
        made("rows", level="causal")
