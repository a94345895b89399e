"""The oracle's own model of metadata: as the nodes' image on all courses, and it refuses the same.

Two writings of one thing. Where they differ, one of them is wrong, or Kafka's documents are read in
two ways.
"""

import random

import pytest

from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.content import image_records
from splitbrain.nodes.metadata.errors import ContradictionError
from splitbrain.nodes.metadata.records import MetadataRecord
from splitbrain.simulation.kraft.metadata.model import ImpossibleRecordError, MetadataModel
from splitbrain.simulation.kraft.metadata.state import key_of, read
from tests.unit.nodes.controller.clusters import partition
from tests.unit.nodes.metadata.courses import after, course

A, B = "a" * 32, "b" * 32


@pytest.mark.parametrize("seed", range(40))
def test_a_course_makes_of_the_model_what_it_makes_of_an_image(seed: int) -> None:
    model = MetadataModel()
    written, images = course(seed, 150)
    for at, (record, image) in enumerate(zip(written, images, strict=True)):
        model.take(record)
        told = list(image_records(image))
        assert model.metadata.told() == {key_of(each): each for each in told}, f"{at}: {record}"
        assert read(told) == model.metadata


@pytest.mark.parametrize("seed", range(10))
def test_what_no_record_affected_stands_as_it_stood(seed: int) -> None:
    model = MetadataModel()
    for record in course(seed, 150)[0]:
        before = model.metadata
        model.take(record)
        after = model.metadata
        affected = list(after.affected_since(before))
        if after.brokers != before.brokers:
            assert affected == list(after.all_partitions())
        for each in after.all_partitions():
            known = before.partition(each.topic_id, each.partition_id)
            assert each in affected or each == known


@pytest.mark.parametrize("seed", range(40))
def test_the_model_refuses_where_an_image_does(seed: int) -> None:
    """Records of one course after those of another: most of them contradict something."""
    source = random.Random(seed)
    mine, images = course(seed, 60)
    other, _ = course(seed + 1_000, 60)
    refused = 0
    for record in other:
        at = source.randrange(len(mine))
        model = MetadataModel()
        for each in mine[: at + 1]:
            model.take(each)
        try:
            image = after(images[at], [record], at + 1)
        except ContradictionError:
            refused += 1
            with pytest.raises(ImpossibleRecordError):
                model.take(record)
            continue
        model.take(record)
        assert model.metadata.told() == {key_of(told): told for told in image_records(image)}
    assert refused > 5


def test_a_transaction_counts_when_it_ends_and_never_if_it_is_aborted() -> None:
    model = MetadataModel()
    model.take(records.BeginTransactionRecord(None))
    model.take(records.TopicRecord("first", A))
    assert model.is_open
    assert not model.metadata.topics
    model.take(records.EndTransactionRecord())
    model.take(records.BeginTransactionRecord(None))
    model.take(records.TopicRecord("second", B))
    model.take(records.AbortTransactionRecord(None))
    assert list(model.metadata.topics) == [A]
    assert not model.is_open


@pytest.mark.parametrize(
    "course_of",
    [
        [records.EndTransactionRecord()],
        [records.AbortTransactionRecord(None)],
        [records.BeginTransactionRecord(None), records.BeginTransactionRecord(None)],
        [records.TopicRecord("t", A), partition(A, 1, (1,))],
        [records.TopicRecord("t", A), records.TopicRecord("t", B)],
        [records.ClearElrRecord("t")],
    ],
)
def test_a_record_out_of_place_is_refused(course_of: list[MetadataRecord]) -> None:
    model = MetadataModel()
    for record in course_of[:-1]:
        model.take(record)
    with pytest.raises(ImpossibleRecordError):
        model.take(course_of[-1])


def test_what_was_shown_never_changes() -> None:
    model = MetadataModel()
    shown = []
    for record in course(7, 150)[0]:
        shown.append((model.metadata, model.metadata.told()))
        model.take(record)
    assert all(metadata.told() == told for metadata, told in shown)
