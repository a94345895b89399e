"""The audit sees each way in which a record can go wrong, and only those."""

from tests.referee.audit import audit


def test_acknowledged_records_that_are_found_once_and_in_order_are_clean() -> None:
    result = audit({0, 1, 2}, {0: [0, 2], 1: [1]})
    assert (result.acknowledged, result.found, result.is_clean) == (3, 3, True)


def test_a_record_that_was_not_acknowledged_may_be_found() -> None:
    assert audit({0}, {0: [0, 1]}).is_clean


def test_an_acknowledged_record_that_is_not_found_is_lost() -> None:
    result = audit({0, 1, 5}, {0: [1]})
    assert (result.lost, result.is_clean) == ((0, 5), False)


def test_a_record_found_twice_is_repeated_also_across_partitions() -> None:
    assert audit({0, 1}, {0: [0, 0, 1]}).repeated == (0,)
    result = audit({0, 1}, {0: [0, 1], 1: [1]})
    assert (result.repeated, result.is_clean) == ((1,), False)


def test_a_record_after_a_later_one_is_out_of_order_within_its_partition_alone() -> None:
    result = audit({0, 1, 2}, {0: [0, 2, 1]})
    assert (result.out_of_order, result.is_clean) == ((1,), False)
    assert audit({0, 1, 2}, {0: [2], 1: [0, 1]}).is_clean
