"""Damage to a run folder convicts no system, and a run that failed is not acquitted later."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checker.verdict import Verdict
from harness import evidence_loader
from harness.manifest import open_manifest, write_manifest
from history.run_folder import RunFolder
from tests.synthetic_runs import NODES, write_run
from tests.unit.harness.in_process import judge_in_process
from tests.unit.harness.test_mutated_runs import edit, judged, verdict_of


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    judge_in_process(monkeypatch)
    return RunFolder(write_run(tmp_path / "run", operations_per_second=30))


def break_a_line(path: Path) -> None:
    dump = path.read_bytes().splitlines(keepends=True)
    dump[21] = b"{" + dump[21][3:]
    path.write_bytes(b"".join(dump))


def cut_a_line_out(path: Path) -> None:
    dump = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*dump[:21], *dump[22:]]))


def change_a_digest(path: Path) -> None:
    def change(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        records[15]["digest"] = f"of {path.parent.name}"
        return records

    edit(path, change)


@pytest.mark.parametrize("damage", [break_a_line, cut_a_line_out, change_a_digest])
def test_a_damaged_dump_convicts_nobody(copy: RunFolder, damage: Callable[[Path], object]) -> None:
    write_manifest(copy)
    for node in NODES[:2]:
        damage(copy.committed_log(node))
    found = judged(copy)
    assert (found.headline, found.exit_code) == ("UNKNOWN", 2)


def test_a_dump_with_a_broken_line_convicts_nobody_of_a_dead_run_either(copy: RunFolder) -> None:
    for node in NODES:
        break_a_line(copy.committed_log(node))
    found = judged(copy)
    assert (found.headline, found.exit_code) == ("UNKNOWN", 2)
    assert verdict_of(found, "lost-commits") is not Verdict.INVALID


def test_a_run_that_ends_while_it_is_read_was_read_in_part(
    copy: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    living = [True]
    read_history = evidence_loader._read_history

    def read_and_end(*arguments: Any) -> Any:
        living[0] = False
        return read_history(*arguments)

    monkeypatch.setattr(evidence_loader, "is_alive", lambda _: living[0])
    monkeypatch.setattr(evidence_loader, "_read_history", read_and_end)
    assert evidence_loader.load_run(copy.root).living


def test_a_run_whose_last_words_could_not_be_written_is_never_valid(copy: RunFolder) -> None:
    """Its command said so and ended with 3; a later judgement must not forget it."""
    open_manifest(copy)
    found = judged(copy)
    assert (found.headline, found.exit_code) == ("UNKNOWN", 2)
    assert "was not sealed" in found.checkers[-1].reason
    write_manifest(copy)
    assert judged(copy).exit_code == 0


def not_utf_8(line: bytes) -> bytes:
    return line.replace(b'":"', b'":"\xff', 1).replace(b'": "', b'": "\xff', 1)


def beyond_any_clock(line: bytes) -> bytes:
    return re.sub(rb'"(time|offset|index|schema)": ?\d+', rb'"\1":1' + b"0" * 25, line, count=1)


def nested_deeply(line: bytes) -> bytes:
    deep = b"[" * 900 + b"]" * 900
    return re.sub(rb'"(value|kind|key|role|detail|phase|seed)": ?[^,}]+', rb'"\1":' + deep, line)


@pytest.mark.parametrize("damage", [not_utf_8, beyond_any_clock, nested_deeply])
@pytest.mark.parametrize(
    "name",
    [
        *("plan.json", "phases.jsonl", "schedule.jsonl", "faults.jsonl", "history.jsonl"),
        *("nodes/n1/log.jsonl", "nodes/n2/state_events.jsonl"),
    ],
)
def test_bytes_that_no_record_holds_are_said_and_never_crash(
    copy: RunFolder, name: str, damage: Callable[[bytes], bytes]
) -> None:
    path = copy.root / name
    lines = path.read_bytes().split(b"\n")
    whole = b"\n".join(lines) if name == "plan.json" else lines[1]
    damaged = damage(whole)
    if damaged == whole:  # The record has no such field: a log's texts are digests, for one.
        damaged = damage(whole[:-1] + b',"detail":"x","time":1}')
    lines[1] = damaged
    path.write_bytes(damaged if name == "plan.json" else b"\n".join(lines))
    found = judged(copy)
    assert (found.headline, found.exit_code) == ("UNKNOWN", 2)
    said = " ".join([check.reason for check in found.checkers])
    assert "crashed" not in said
    assert "codec" not in said
