"""Operations as functions of (seed, slot, n)."""

import random
from collections import Counter

import pytest

from splitbrain.contracts.draws import Draws
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.history.functions import effect_of, only_reads
from splitbrain.workloads.workload import (
    Workload,
    checkers_fitting,
    workload,
    workload_names,
)

SLOTS = 10


def make(name: str, options: dict[str, str] | None = None, seed: int = 5) -> Workload:
    return workload(name, seed=seed, slots=SLOTS, readers=frozenset({1}), options=options or {})


CASES = [
    ("register", {}),
    ("register", {"values": "unique"}),
    ("register", {"cas": "no"}),
    ("set", {}),
    ("topics", {}),
    ("topics", {"brokers": "change"}),
    ("queue", {}),
    ("bank", {}),
    ("counter", {}),
    ("kv", {}),
    ("lease", {}),
    ("multi-register", {}),
    ("mutex", {}),
    ("sessions", {}),
    ("list-append", {}),
    ("list-append", {"keys": "pairs"}),
    ("rw-register", {}),
    ("rw-register", {"mini": "no"}),
    ("long-fork", {}),
    ("rows", {}),
    ("log", {}),
    ("groups", {}),
    ("transform", {}),
    ("share-groups", {}),
]
#: Workloads whose operations have no key: their parts do.
OF_PARTS = (
    *("groups", "list-append", "log", "long-fork", "rows", "rw-register", "share-groups"),
    "transform",
)
#: Operations on a key before it is given up, where that is not 200; None: there is one key.
PER_KEY = {"set": 500, "topics": 60, "unique-ids": None, **dict.fromkeys(OF_PARTS)}
#: Functions of the final reads, where that is not ``read``; None: nothing can be read.
FINALS = {
    "topics": "describe",
    "queue": "dequeue",
    "kv": "get",
    "log": "poll",
    "multi-register": "txn",
    "mutex": None,
    "unique-ids": None,
}


@pytest.mark.parametrize(("name", "options"), CASES)
def test_an_operation_depends_on_its_place_alone(name: str, options: dict[str, str]) -> None:
    places = [(slot, n) for slot in range(SLOTS) for n in range(100)]
    in_order = make(name, options)
    expected = {place: in_order.operation(*place) for place in places}
    random.Random(1).shuffle(places)
    shuffled = make(name, options)
    assert {place: shuffled.operation(*place) for place in places} == expected


@pytest.mark.parametrize(("name", "options"), CASES)
def test_seeds_and_slots_have_streams_of_their_own(name: str, options: dict[str, str]) -> None:
    def stream(seed: int, slot: int) -> list[Operation]:
        source = make(name, options, seed)
        return [source.operation(slot, n) for n in range(50)]

    streams = [stream(seed, slot) for seed in (1, 2) for slot in (0, 1)]
    assert all(a != b for i, a in enumerate(streams) for b in streams[:i])


@pytest.mark.parametrize(("name", "options"), CASES)
def test_every_function_of_a_workload_is_declared(name: str, options: dict[str, str]) -> None:
    source = make(name, options)
    asked = [source.operation(slot, n) for slot in range(SLOTS) for n in range(200)]
    finals = source.final_reads()
    finals += tuple(view for read in finals if (view := source.at_observer(read)) is not None)
    used = {operation.f for operation in (*asked, *finals)}
    assert used <= source.functions.keys()
    assert all(only_reads(source.functions, read.f, read.value) != read.drains for read in finals)


@pytest.mark.parametrize(
    ("functions", "workload_name"),
    [
        ({"read", "write", "cas"}, "register"),
        ({"read"}, "register"),
        (set[str](), "register"),
        ({"read", "add"}, "set"),
        ({"add"}, "set"),
        ({"create", "view"}, "topics"),
        ({"describe"}, "topics"),
        ({"enqueue"}, "queue"),
        ({"read", "write"}, "register"),
        ({"read", "add-and-get"}, "counter"),
        ({"read", "transfer"}, "bank"),
        ({"get", "put"}, "kv"),
        ({"txn"}, "multi-register"),
        ({"acquire", "release", "write"}, "lease"),
        ({"generate"}, "unique-ids"),
        ({"send", "poll"}, "log"),
        ({"send", "consume", "commit"}, "groups"),
        ({"send", "transform", "fetch-offsets"}, "transform"),
        ({"send", "acquire", "settle"}, "share-groups"),
        ({"never-heard-of"}, "register"),
    ],
)
def test_a_run_without_plan_is_judged_as_the_workload_that_its_functions_fit(
    functions: set[str], workload_name: str
) -> None:
    assert checkers_fitting(functions) == make(workload_name).checkers


def test_queues_are_kept_where_no_search_judges_them() -> None:
    source = make("queue")
    asked = [source.operation(slot, n) for n in range(600) for slot in range(SLOTS)]
    for operation in asked[:100]:
        source.completed(operation, Completion("info", None))
    asked += [source.operation(slot, n) for n in range(600, 900) for slot in range(SLOTS)]
    assert {operation.key for operation in asked} == {"q0-0", "q1-0"}


@pytest.mark.parametrize("name", workload_names())
def test_a_key_gets_about_so_many_operations_over_all_slots(name: str) -> None:
    source = make(name, {"promise": "fifo"} if name == "queue" else {})
    rounds = 600
    counts = Counter(source.operation(slot, n).key for n in range(rounds) for slot in range(SLOTS))
    whole = [count for key, count in counts.items() if key and not key.endswith(f"-{rounds}")]
    expected = PER_KEY.get(name, 200)
    assert (expected is None) == (len(counts) == 1)
    if expected is None:
        return
    assert 0.7 * expected < sorted(whole)[len(whole) // 2] < 1.3 * expected


def test_few_registers_live_at_once() -> None:
    source = make("register")
    keys = {source.operation(slot, 30).key for slot in range(SLOTS)}
    assert keys <= {"r0-0", "r1-0"}


@pytest.mark.parametrize(
    ("name", "options", "shares", "of_readers"),
    [
        ("register", {}, {"read": 0.3, "write": 0.4, "cas": 0.3}, "read"),
        ("register", {"cas": "no"}, {"read": 0.5, "write": 0.5}, "read"),
        ("topics", {}, {"create": 0.4, "delete": 0.3, "describe": 0.3}, "view"),
    ],
)
def test_functions_have_their_shares_and_readers_only_read(
    name: str, options: dict[str, str], shares: dict[str, float], of_readers: str
) -> None:
    source = make(name, options)
    assert options.items() <= source.options().items()
    operations = [source.operation(slot, n) for n in range(300) for slot in range(2, SLOTS)]
    counts = Counter(operation.f for operation in operations)
    assert {f: round(count / len(operations), 1) for f, count in counts.items()} == shares
    assert {source.operation(1, n).f for n in range(300)} == {of_readers}
    written = {operation.value for operation in operations if operation.f == "write"}
    assert written == ({1, 2, 3, 4, 5} if name == "register" else set())


def test_each_element_comes_once_and_each_queue_that_was_used_is_drained() -> None:
    source = make("queue")
    asked = [source.operation(slot, n) for n in range(300) for slot in range(SLOTS)]
    elements = [operation.value for operation in asked if operation.f == "enqueue"]
    assert len(elements) == len(set(elements))
    assert None not in elements
    taken = sum(operation.f == "dequeue" for operation in asked)
    # More come than are taken, so that something is left to be drained.
    assert 0.6 * len(elements) < taken < len(elements)
    finals = source.final_reads()
    assert {final.key for final in finals} == {operation.key for operation in asked}
    assert {(final.f, final.value, final.drains) for final in finals} == {("dequeue", None, True)}


def test_a_dequeue_that_finds_nothing_changes_nothing() -> None:
    functions = make("queue").functions
    found = [effect_of(functions, "dequeue", None, result) for result in (None, 0, 3)]
    assert found == ["reads", "changes", "changes"]
    assert effect_of(functions, "enqueue", 1, False) == "reads"
    # Without an answer it may have taken something.
    assert not only_reads(functions, "dequeue", None)


@pytest.mark.parametrize(
    ("options", "judges"),
    [
        ({}, ()),
        ({"promise": "delivery"}, ()),
        ({"promise": "unordered"}, ("linearizability:unordered-queue",)),
        ({"promise": "fifo"}, ("linearizability:fifo-queue",)),
    ],
)
def test_a_queue_is_held_to_what_is_promised(
    options: dict[str, str], judges: tuple[str, ...]
) -> None:
    assert make("queue", options).checkers == (*judges, "queue-totals", "split-brain")


def test_unique_values_are_written_once() -> None:
    source = make("register", {"values": "unique"})
    written: list[int] = []
    for slot in range(SLOTS):
        for n in range(500):
            operation = source.operation(slot, n)
            if operation.f == "write":
                written.append(operation.value)
            elif operation.f == "cas":
                written.append(operation.value[1])
    assert len(written) == len(set(written))


def test_set_elements_are_unique_and_dominate() -> None:
    source = make("set")
    operations = [source.operation(slot, n) for n in range(300) for slot in range(SLOTS)]
    added = [operation.value for operation in operations if operation.f == "add"]
    assert len(added) == len(set(added))
    assert len(added) > 0.85 * len(operations)


def test_a_register_with_too_many_unknown_outcomes_is_given_up_early_and_alone() -> None:
    source, untouched = make("register"), make("register")
    info = Completion("info", error="timed-out")
    place = next(n for n in range(60) if source.operation(0, n).key == "r1-0")
    for _ in range(19):
        source.completed(source.operation(0, place), info)
    assert source.operation(0, place).key == "r1-0"
    source.completed(source.operation(0, place), info)
    fresh = source.operation(0, place)
    assert fresh.key == "r1-0-1"
    # Kind and value stay, other keys and later generations stay.
    same = untouched.operation(0, place)
    assert (fresh.f, fresh.value) == (same.f, same.value)
    others = [n for n in range(200) if untouched.operation(0, n).key != "r1-0"]
    assert all(source.operation(0, n) == untouched.operation(0, n) for n in others)


def test_certain_outcomes_never_move_a_key() -> None:
    source = make("register")
    operation = source.operation(0, 0)
    for _ in range(100):
        source.completed(operation, Completion("fail", error="not-leader"))
        source.completed(operation, Completion("ok"))
    assert source.operation(0, 0) == operation


@pytest.mark.parametrize("name", [name for name in workload_names() if name not in OF_PARTS])
def test_final_reads_cover_every_key_that_was_used(name: str) -> None:
    source = make(name)
    used = {source.operation(slot, n).key for n in range(300) for slot in range(SLOTS)}
    reads = source.final_reads()
    function = FINALS.get(name, "read")
    if function is None:
        assert reads == ()
        return
    assert {operation.key for operation in reads} == used
    assert {operation.f for operation in reads} == {function}
    assert len(reads) == len(used)


def test_unknown_workloads_options_and_values_are_refused() -> None:
    with pytest.raises(UsageError, match="no workload called 'stack'"):
        workload("stack", seed=1, slots=1, readers=frozenset(), options={})
    with pytest.raises(UsageError, match="Choose one of: delivery, unordered, fifo"):
        make("queue", {"promise": "exactly-once"})
    with pytest.raises(UsageError, match="no option 'value'"):
        make("register", {"value": "unique"})
    with pytest.raises(UsageError, match="Choose one of: small, unique"):
        make("register", {"values": "large"})


def test_draws_are_uniform_and_end() -> None:
    counts = Counter(Draws(1, 0, n).below(5) for n in range(5000))
    assert all(850 < counts[value] < 1150 for value in range(5))
    draws = Draws(1, 0, 0)
    for _ in range(8):
        draws.below(2)
    with pytest.raises(IndexError):
        draws.below(2)


@pytest.mark.parametrize("brokers", ["view", "change"])
def test_creates_of_one_topic_are_told_apart_and_small(brokers: str) -> None:
    source = make("topics", {"brokers": brokers})
    asked: dict[str | None, list[int]] = {}
    for n in range(300):
        for slot in range(SLOTS):
            operation = source.operation(slot, n)
            if operation.f == "create":
                asked.setdefault(operation.key, []).append(operation.value)
    assert len(asked) > 20
    for numbers in asked.values():
        assert sorted(numbers) == list(range(1, len(numbers) + 1))


def test_readers_create_and_delete_where_that_is_asked_and_view_instead_of_describing() -> None:
    source, usual = make("topics", {"brokers": "change"}), make("topics")
    assert {source.operation(1, n).f for n in range(300)} == {"create", "delete", "view"}
    assert source.options() == {"brokers": "change"}
    for n in range(100):
        others = [(each.operation(2, n).f, each.operation(2, n).key) for each in (source, usual)]
        assert others[0] == others[1]


def test_a_topic_given_up_early_keeps_its_numbers() -> None:
    source, untouched = make("topics"), make("topics")
    first = next(
        (slot, n)
        for n in range(10)
        for slot in range(2, SLOTS)
        if untouched.operation(slot, n).f == "create"
    )
    before = source.operation(*first)
    for _ in range(20):
        source.completed(before, Completion("info", error="timed-out"))
    after = source.operation(*first)
    assert after.key == f"{before.key}-1"
    assert after.value == before.value


def test_only_topics_are_read_at_nodes_that_do_not_vote() -> None:
    read = Operation("read", "r0-0", None)
    assert make("register").at_observer(read) is None
    assert make("set").at_observer(read) is None
    described = Operation("describe", "t0-0", None)
    assert make("topics").at_observer(described) == Operation("view", "t0-0", None)


@pytest.mark.parametrize("name", ["kv", "multi-register", "sessions", *OF_PARTS])
def test_what_is_written_is_written_once(name: str) -> None:
    source = make(name)
    asked = [source.operation(slot, n) for n in range(200) for slot in range(SLOTS)]
    written = [
        value
        for asking in asked
        for value in (
            # A row is named a second time where it is deleted.
            [part[2] for part in asking.value or () if part[0] not in ("poll", "delete")]
            if (name in OF_PARTS or asking.f == "txn") and not isinstance(asking.value, str)
            else [None if name in OF_PARTS else asking.value]
        )
        if value is not None
    ]
    assert len(written) > 300
    assert len(set(written)) == len(written)


def test_transfers_go_between_two_accounts_of_a_bank() -> None:
    source = make("bank")
    asked = [source.operation(slot, n) for n in range(200) for slot in range(SLOTS)]
    transfers = [operation.value for operation in asked if operation.f == "transfer"]
    assert {giver for giver, _, _ in transfers} == {taker for _, taker, _ in transfers}
    assert all(giver != taker and 1 <= amount <= 10 for giver, taker, amount in transfers)


def test_a_slot_keeps_to_one_lock_of_a_generation() -> None:
    source = make("lease")
    for slot in range(SLOTS):
        assert len({source.operation(slot, n).key for n in range(20)}) == 1
