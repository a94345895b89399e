"""Reading a run folder tolerates what a dead run leaves and says what it could not read."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from splitbrain.contracts.committed import RecordNumber, ReplicaLog, ReplicaRecord
from splitbrain.contracts.fault import FaultEvent
from splitbrain.contracts.names import NodeName
from splitbrain.harness.judge.evidence_loader import (
    load_run,
    read_committed_log,
    read_json_lines,
    read_replica_logs,
)
from splitbrain.harness.judge.fault_results import fault_results
from splitbrain.harness.run.log_collection import write_replica_logs
from splitbrain.history.fault_windows import fault_windows, longest_unavailability_ns
from splitbrain.history.functions import USUAL
from splitbrain.history.records import PairedOperation
from tests.synthetic_runs import write_run

S = 1_000_000_000


def test_a_torn_last_line_is_dropped_and_told(tmp_path: Path) -> None:
    path = tmp_path / "faults.jsonl"
    path.write_text('{"a": 1}\n{"a": 2}\n{"a": ')
    problems: list[str] = []
    assert read_json_lines(path, dict, problems) == [{"a": 1}, {"a": 2}]
    assert [problem.split("/")[-1] for problem in problems] == [
        "faults.jsonl is torn (6 bytes left out)."
    ]


def test_broken_lines_in_the_middle_are_told_once_per_file(tmp_path: Path) -> None:
    path = tmp_path / "faults.jsonl"
    path.write_text('{"a": 1}\nnonsense\nmore\n{"a": 2}\n')
    problems: list[str] = []
    assert read_json_lines(path, dict, problems) == [{"a": 1}, {"a": 2}]
    assert len(problems) == 1
    assert problems[0].startswith("2 lines of")


def test_a_missing_file_has_no_lines(tmp_path: Path) -> None:
    assert read_json_lines(tmp_path / "gone", dict, []) == []


def test_a_log_dump_that_stops_early_cannot_pass_for_a_short_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    record = {"offset": 0, "epoch": 1, "f": None, "key": None, "value": None, "digest": "d"}
    header = {"node": "n1", "start_offset": 0, "end_offset": 2}
    lines = [msgspec.json.encode(line) for line in (header, record)]
    path.write_bytes(b"\n".join(lines) + b"\n")
    problems: list[str] = []
    assert read_committed_log(path, problems) is None
    assert "stops at offset 1 before its end 2" in problems[0]


def dumped_replicas() -> list[ReplicaLog]:
    return [
        ReplicaLog(
            *("n1", log, 0, 3, 2),
            records=(
                ReplicaRecord(0, 1, "aa", "v"),
                ReplicaRecord(2, 1, "bb", [7], RecordNumber(9, 0, 4)),
            )[:count],
        )
        for log, count in (("0", 2), ("11", 0))
    ]


def test_replicas_are_read_as_they_were_dumped(tmp_path: Path) -> None:
    path = tmp_path / "replicas.jsonl"
    write_replica_logs(path, dumped_replicas())
    problems: list[str] = []
    assert read_replica_logs(path, problems) == dumped_replicas()
    assert problems == []
    write_replica_logs(path, [])
    assert read_replica_logs(path, problems) == problems == []


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda lines: [lines[0], lines[1]], "log 0 has 1 of 2 records"),
        (lambda lines: lines[:1], "log 0 has 0 of 2 records"),
        (lambda lines: lines[1:], "is not one and is left out"),
        (lambda lines: [*lines[:2], b'{"offset": 1}', *lines[3:]], "is not one and is left out"),
        (lambda lines: [*lines[:2], b"{", *lines[3:]], "are broken and left out"),
    ],
)
def test_a_dump_of_replicas_that_is_damaged_is_left_out(
    tmp_path: Path, spoil: Callable[[list[bytes]], list[bytes]], problem: str
) -> None:
    path = tmp_path / "replicas.jsonl"
    write_replica_logs(path, dumped_replicas())
    path.write_bytes(b"".join(line + b"\n" for line in spoil(path.read_bytes().splitlines())))
    problems: list[str] = []
    assert read_replica_logs(path, problems) == []
    assert problem in problems[0]


def test_an_empty_folder_is_read_with_its_gaps_told(tmp_path: Path) -> None:
    record = load_run(tmp_path)
    assert (record.events, record.plan, record.living) == ([], None, False)
    assert len(record.problems) == 2


def test_everything_of_a_run_is_read(tmp_path: Path) -> None:
    record = load_run(write_run(tmp_path / "run", operations_per_second=30))
    assert record.problems == ()
    assert record.node_names == ["n1", "n2", "n3"]
    assert set(record.state_events) == set(record.committed_logs) == {"n1", "n2", "n3"}
    assert len(record.scheduled) == 3
    assert len(record.faults) == 15


def fault_event(phase: str, at: int, evidence: str | None = None) -> FaultEvent:
    return FaultEvent(at * S, 0, "kill", phase, "leader", (NodeName("n1"),), evidence=evidence)  # type: ignore[arg-type]


def test_the_story_of_a_fault_becomes_one_result() -> None:
    events = [
        fault_event("invoked", 5),
        fault_event("verified", 6, "n1 is exited"),
        fault_event("healing", 9, "3 operations acknowledged meanwhile"),
        fault_event("removed", 10),
        fault_event("resumed", 11),
    ]
    (result,) = fault_results((), events)
    assert (result.at_ms, result.verified_ms, result.healed_ms, result.resumed_ms) == (
        5000,
        6000,
        10000,
        11000,
    )
    assert result.verified
    assert result.healed
    assert result.applied
    assert result.evidence == "n1 is exited; 3 operations acknowledged meanwhile"
    (window,) = fault_windows(events, 99 * S)
    assert (window.start, window.end) == (5 * S, 10 * S)


def test_a_fault_without_a_target_was_not_applied_and_has_no_window() -> None:
    events = [fault_event("not-applicable", 5, "no leader for 5 s")]
    (result,) = fault_results((), events)
    assert not result.applied
    assert result.evidence == "no leader for 5 s"
    assert fault_windows(events, 99 * S) == []


def test_a_fault_that_was_not_healed_lasts_to_the_end() -> None:
    events = [fault_event("invoked", 5), fault_event("not-healed", 9, "n1 is exited")]
    (result,) = fault_results((), events)
    assert result.applied
    assert not result.healed
    (window,) = fault_windows(events, 99 * S)
    assert window.end == 99 * S


@pytest.mark.parametrize(
    ("moments", "expected"),
    [
        ([(0, 1), (2, 3), (9, 10)], 7),  # between two acknowledgements
        ([(0, 6), (6, 7)], 6),  # until the first
    ],
)
def test_longest_unavailability(moments: list[tuple[int, int]], expected: int) -> None:
    writes = [
        PairedOperation(index, 0, "write", "r", 1, 1, "ok", start * S, end * S)
        for index, (start, end) in enumerate(moments)
    ]
    assert longest_unavailability_ns(writes, USUAL) == expected * S


def test_reads_do_not_shorten_unavailability_and_final_reads_do_not_lengthen_it() -> None:
    write = PairedOperation(0, 0, "write", "r", 1, 1, "ok", 0, S)
    late = PairedOperation(1, 0, "write", "r", 1, 1, "ok", 5 * S, 6 * S)
    read = PairedOperation(2, 1, "read", "r", None, 1, "ok", 2 * S, 3 * S)
    final = msgspec.structs.replace(read, start=90 * S, end=91 * S, final=True)
    assert longest_unavailability_ns([write, late, read, final], USUAL) == 5 * S
    assert longest_unavailability_ns([read], USUAL) is None
