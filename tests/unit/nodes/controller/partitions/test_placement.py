"""Placement: the same as Kafka's, and its properties."""

import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.controller.basis.decisions import Refusal
from splitbrain.nodes.controller.partitions.placement import UsableBroker, place
from splitbrain.nodes.wire.errors import ApiError
from tests.unit.nodes.controller.clusters import FixedFraction

VECTORS = Path("tests/corpus/controller/placement_vectors.tsv")


def brokers_of(text: str) -> list[UsableBroker]:
    return [
        UsableBroker(int(broker_id), rack or None, state == "f")
        for broker_id, rack, state in (each.split(":") for each in text.split(",") if each)
    ]


def placements(brokers: list[UsableBroker], partitions: int, factor: int, fraction: float) -> str:
    try:
        placed = place(brokers, partitions, factor, FixedFraction(fraction))
    except Refusal as refusal:
        return f"! {refusal.message}"
    return ";".join(",".join(map(str, replicas)) for replicas in placed)


def test_replicas_go_where_a_real_controller_puts_them() -> None:
    lines = VECTORS.read_text().splitlines()
    refused = 0
    for line in lines:
        fraction, brokers, partitions, factor, expected = line.split("\t")
        found = placements(brokers_of(brokers), int(partitions), int(factor), float(fraction))
        assert found == expected, line
        refused += expected.startswith("!")
    assert 100 < refused < len(lines) - 100


@pytest.mark.parametrize(
    ("brokers", "factor", "message"),
    [
        ("1::u", 0, "Invalid replication factor 0: the replication factor must be positive."),
        (
            "1::f,2::f",
            1,
            "All brokers are currently fenced, or have all their log directories cordoned.",
        ),
        (
            "1::u,2::f",
            3,
            (
                "The target replication factor of 3 cannot be reached because only 2 broker(s) are "
                "registered or some brokers have all their log directories cordoned."
            ),
        ),
    ],
)
def test_too_few_brokers_are_refused(brokers: str, factor: int, message: str) -> None:
    with pytest.raises(Refusal) as refused:
        place(brokers_of(brokers), 1, factor, random.Random(1))
    assert refused.value.code is ApiError.INVALID_REPLICATION_FACTOR
    assert refused.value.message == message


@st.composite
def clusters(draw: st.DrawFn) -> list[UsableBroker]:
    racks = st.sampled_from([None, "a", "b", "c"])
    rows = draw(st.lists(st.tuples(racks, st.booleans()), min_size=1, max_size=9))
    rows[0] = (rows[0][0], False)
    return [UsableBroker(number, rack, fenced) for number, (rack, fenced) in enumerate(rows)]


@given(clusters(), st.integers(1, 30), st.data(), st.randoms(use_true_random=False))
def test_replicas_are_distinct_and_led_by_a_broker_that_is_not_fenced(
    brokers: list[UsableBroker], partitions: int, data: st.DataObject, source: random.Random
) -> None:
    factor = data.draw(st.integers(1, len(brokers)))
    fenced = {broker.broker_id for broker in brokers if broker.is_fenced}
    placed = place(brokers, partitions, factor, source)
    assert len(placed) == partitions
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == factor
        assert replicas[0] not in fenced


@given(st.integers(1, 4), st.integers(1, 4), st.data(), st.randoms(use_true_random=False))
def test_replicas_are_spread_over_racks_of_one_size(
    racks: int, size: int, data: st.DataObject, source: random.Random
) -> None:
    brokers = [UsableBroker(number, f"r{number % racks}", False) for number in range(racks * size)]
    factor = data.draw(st.integers(1, racks * size))
    for replicas in place(brokers, 20, factor, source):
        per_rack = Counter(broker_id % racks for broker_id in replicas)
        counts = [per_rack[rack] for rack in range(racks)]
        assert max(counts) - min(counts) <= 1


@given(st.integers(1, 7), st.randoms(use_true_random=False))
def test_leaders_are_spread_over_the_brokers(count: int, source: random.Random) -> None:
    brokers = [UsableBroker(number, None, False) for number in range(count)]
    leaders = Counter(replicas[0] for replicas in place(brokers, count * 5, 1, source))
    assert set(leaders.values()) == {5}
