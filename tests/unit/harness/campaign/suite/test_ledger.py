"""The ledger: whole lines only, torn ends mended, many writers, nothing ever lost or guessed."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.campaign.suite import ledger as ledgers
from splitbrain.harness.campaign.suite.ledger import Ledger, NightEnded, RunEnded


def ended(number: int = 1) -> NightEnded:
    return NightEnded(suite="s", night=f"n{number}", at="now", reason="done")


def append_many(path: Path, writer: int) -> None:
    for number in range(25):
        Ledger(path).append(ended(writer * 1000 + number))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger of one line."""
    made = Ledger(tmp_path / "deep" / "ledger.jsonl")
    assert made.lines() == []
    made.append(ended(1))
    return made


def test_lines_come_back_as_they_were(ledger: Ledger) -> None:
    ledger.append(ended(2))
    assert ledger.lines() == [ended(1), ended(2)]


def test_a_torn_last_line_is_left_out_and_cut_away_by_the_next_writer(ledger: Ledger) -> None:
    whole = ledger.path.read_bytes()
    for length in range(1, len(whole) - 1):
        ledger.path.write_bytes(whole + whole[:length])
        assert ledger.lines() == [ended(1)]
        ledger.append(ended(2))
        assert ledger.lines() == [ended(1), ended(2)]


def test_a_whole_last_line_without_its_end_still_counts(ledger: Ledger) -> None:
    ledger.path.write_bytes(ledger.path.read_bytes().rstrip(b"\n"))
    assert ledger.lines() == [ended(1)]
    ledger.append(ended(2))
    assert ledger.lines() == [ended(1), ended(2)]


def test_a_torn_end_longer_than_a_block_is_cut_away(ledger: Ledger) -> None:
    with ledger.path.open("ab") as file:
        file.write(b"\0" * 200_000)
    ledger.append(ended(2))
    assert ledger.lines() == [ended(1), ended(2)]


@pytest.mark.parametrize(
    ("line", "problem"),
    [(b"{}", "line 1 is no line of a ledger"), (b'{"kind":"run"', "line 1"), (b"\xff", "line 1")],
)
def test_a_broken_line_in_the_middle_is_refused_by_its_number(
    ledger: Ledger, line: bytes, problem: str
) -> None:
    ledger.path.write_bytes(line + b"\n")
    ledger.append(ended(2))
    with pytest.raises(HarnessError, match=problem):
        ledger.lines()


def test_a_line_of_another_schema_is_refused(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.append(msgspec.structs.replace(ended(), schema=2))
    with pytest.raises(HarnessError, match="line 1 has schema 2, not 1"):
        ledger.lines()


def test_several_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    # A lock of flock belongs to the open file, so threads exclude each other as processes do.
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda writer: append_many(path, writer), range(4)))
    assert len({line.night for line in Ledger(path).lines()}) == 100


def test_a_full_disk_is_one_sentence_and_leaves_whole_lines(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = os.pwrite

    def half(descriptor: int, content: bytes, offset: int) -> int:
        if len(content) < 10:
            raise OSError(28, "No space left on device")
        return written(descriptor, content[:-5], offset)

    monkeypatch.setattr(ledgers.os, "pwrite", half)
    with pytest.raises(HarnessError, match=r"No space left on device\. Make room"):
        ledger.append(ended(2))
    monkeypatch.undo()
    assert ledger.path.read_bytes().endswith(b"\n")
    assert ledger.lines() == [ended(1)]


def test_a_ledger_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="Name another one with --ledger"):
        Ledger(tmp_path).lines()


def test_a_run_line_names_all_that_is_needed_to_do_it_again() -> None:
    needed = {"seed", "commit", "dirty", "tool_version", "system_versions", "reproduce", "night"}
    assert needed <= set(RunEnded.__struct_fields__)
