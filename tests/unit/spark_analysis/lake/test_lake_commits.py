"""A commit counts when it is there to its last byte, and is known for torn at any other length."""

import msgspec
import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.spark_analysis.lake.commits import (
    LAYOUT,
    Commit,
    DataFile,
    Partition,
    RunEntry,
    data_name,
    decode_commit,
    encode_commit,
    new_commit_id,
)
from splitbrain.spark_analysis.lake.snapshot import Snapshot

PARTITION = Partition("kraft", "2026-11-21")


def commit_of(name: str, *entries: tuple[str, int, str, int], layout: int = LAYOUT) -> Commit:
    """A commit of runs: id, generation, ingest, compaction."""
    return Commit(
        layout,
        name,
        tuple(
            RunEntry(run_id, PARTITION, generation, ingest, compaction, (), False, "whole")
            for run_id, generation, ingest, compaction in entries
        ),
        (DataFile(f"{name}.parquet", "runs", 1, PARTITION, 1, 1),),
    )


def test_commit_is_torn_at_every_length_but_its_own() -> None:
    content = encode_commit(commit_of("c", ("run", 1, "c", 0)))
    for length in range(len(content)):
        assert decode_commit(content[:length]) is None
    assert decode_commit(content) == commit_of("c", ("run", 1, "c", 0))
    assert decode_commit(content.replace(b"run", b"ran", 1)) is None
    assert decode_commit(content + b"\n") is None


def test_commit_of_a_later_layout_is_refused_in_one_sentence() -> None:
    content = encode_commit(commit_of("c", layout=LAYOUT + 1))
    with pytest.raises(HarnessError, match="its layout is 2, and this version reads"):
        decode_commit(content)


def test_commit_ids_are_never_drawn_twice() -> None:
    assert len({new_commit_id() for _ in range(1_000)}) == 1_000


@pytest.mark.parametrize(
    ("commits", "counting"),
    [
        # The later generation, whatever was moved since.
        ({"a": ("r", 1, "a", 5), "b": ("r", 2, "b", 0)}, "b"),
        # Of one generation the later ingest.
        ({"a": ("r", 1, "a", 3), "b": ("r", 1, "b", 0)}, "b"),
        # Of one ingest what was moved last.
        ({"a": ("r", 1, "a", 1), "b": ("r", 1, "a", 0)}, "a"),
        # Of two moves any, and the same one for everybody.
        ({"a": ("r", 1, "a", 1), "b": ("r", 1, "a", 1)}, "b"),
    ],
)
def test_of_the_commits_of_one_run_one_counts(
    commits: dict[str, tuple[str, int, str, int]], counting: str
) -> None:
    made = {name: commit_of(name, entry) for name, entry in commits.items()}
    for order in (made, dict(reversed(made.items()))):
        snapshot = Snapshot(order, ())
        assert snapshot.runs["r"][1] == counting
        assert [live.file.name for live in snapshot.files()] == [f"{counting}.parquet"]


def test_partitions_are_folders_that_spark_reads_back() -> None:
    name = data_name("runs", Partition("a/b=c é", "2026-11-21"), "c")
    assert name == "tables/runs/system=a%2Fb%3Dc%20%C3%A9/day=2026-11-21/c.parquet"


def test_sources_are_plain_data() -> None:
    made = commit_of("c", ("run", 1, "c", 0))
    assert msgspec.json.decode(msgspec.json.encode(made), type=Commit) == made
