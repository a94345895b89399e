"""Lines of the nodes' own logs around a moment: forms of times, order, bounds."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from splitbrain.harness.report.node_lines import LINE_CHARACTERS_MAX, LinesAround, NodeLogs
from splitbrain.history.run_folder import RunFolder
from tests.synthetic_runs import HOSTILE

STARTED = "2026-11-27T11:47:13.002+00:00"
ZERO = datetime.fromisoformat(STARTED).astimezone(UTC)
S = 1_000_000_000


def logs(
    root: Path, clocks: Mapping[str, str] | None = None, /, **contents: Sequence[str] | bytes
) -> NodeLogs:
    """Write each node's ``output.log``."""
    for node, content in contents.items():
        folder = root / "nodes" / node
        folder.mkdir(parents=True, exist_ok=True)
        text = (
            content if isinstance(content, bytes) else "".join(f"{x}\n" for x in content).encode()
        )
        (folder / "output.log").write_bytes(text)
    return NodeLogs(RunFolder(root), sorted(contents), STARTED, clocks or {})


def at(seconds: float, form: str = "%Y-%m-%dT%H:%M:%S.%fZ") -> str:
    return datetime.fromtimestamp(ZERO.timestamp() + seconds, UTC).strftime(form)


def around(read: NodeLogs, second: float, lines_max: int = 100) -> LinesAround:
    found = read.around(int(second * S), lines_max)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("line", "second"),
    [
        # A container engine, before whatever the program prints itself
        ("2026-11-27T11:47:18.502000001Z 1:M 27 Nov 2026 09:00:00.000 * Ready", 5.5),
        ('{"level":"info","ts":"2026-11-27T11:47:18.502Z","msg":"ready"}', 5.5),  # etcd
        ('{"t":{"$date":"2026-11-27T12:47:18.502+01:00"},"s":"I"}', 5.5),  # MongoDB
        ("2026-11-27 11:47:18,502 [myid:1] - INFO  [main] ready", 5.5),  # ZooKeeper
        ("[2026-11-27 11:47:18,502] INFO ready (kafka.server)", 5.5),  # Kafka
        ("2026-11-27 11:47:18.502 UTC [31] LOG:  ready", 5.5),  # PostgreSQL
        ("2026/11/27 11:47:18 ready", 4.998),  # Go
        ("123:M 27 Nov 2026 11:47:18.502 * Ready", 5.5),  # Redis
        ('10.0.0.1 - - [27/Nov/2026:12:47:18 +0100] "GET /"', 4.998),  # web servers
        ('{"time":1795780038502000000,"message":"ready"}', 5.5),
        ('{"timestamp": 1795780038502, "message": "ready"}', 5.5),
        ('{"level":"info","ts":1795780038.502,"msg":"ready"}', 5.5),  # zap
        ("I1127 11:47:18.502000   1 main.go:2] ready", 5.5),  # glog
        ("I261127 11:47:18.502000 1 main.go:2 ready", 5.5),  # CockroachDB
        ("Nov 27 11:47:18 n1 ready", 4.998),  # syslog
        ("2026-11-27 17:17:18,502 INFO in a zone that it does not name", 5.5),
    ],
)
def test_a_time_is_read_in_the_form_of_each_program(
    tmp_path: Path, line: str, second: float
) -> None:
    (found,) = around(logs(tmp_path, n1=[line]), 5.0).lines
    assert found.time / S == pytest.approx(second, abs=1e-6)


@pytest.mark.parametrize("line", ["ready", "", "2026-13-45T11:47:18Z never", "\x00\xff", "1.5 GB"])
def test_a_log_without_times_is_said_to_be_one(tmp_path: Path, line: str) -> None:
    read = logs(tmp_path, n1=[line, line], n2=[f"{at(1)} there"])
    assert [found.node for found in around(read, 1).lines] == ["n2"]
    said = ["The lines of n1 have no times, so none is shown."]
    assert read.notes == (said if line.strip() else [])


def test_lines_are_merged_by_time_with_those_that_follow_their_line(tmp_path: Path) -> None:
    read = logs(
        tmp_path,
        n1=[f"{at(1)} early", f"{at(5)} one", "  Traceback of one", f"{at(6)} three"],
        n2=[f"{at(5.5)} two", f"{at(9)} late"],
    )
    found = around(read, 5.7)
    assert [line.text.split(" ", 1)[-1] for line in found.lines] == [
        "one", " Traceback of one", "two", "three",
    ]  # fmt: skip
    assert [line.node for line in found.lines] == ["n1", "n1", "n2", "n1"]
    assert found.before == 3
    assert not found.is_cut
    assert read.around(60 * S, 10) is None


def test_of_many_lines_the_nearest_are_shown_and_the_rest_is_said_to_be_there(
    tmp_path: Path,
) -> None:
    read = logs(tmp_path, n1=[f"{at(number / 1000)} {number}" for number in range(20_000)])
    found = around(read, 10, lines_max=7)
    assert [line.text.split()[-1] for line in found.lines] == [
        str(number) for number in range(9_997, 10_004)
    ]
    assert found.is_cut
    assert len(around(read, 10, lines_max=10**6).lines) == 4_001


def test_a_crowded_log_is_read_near_the_moment_alone(tmp_path: Path) -> None:
    text = b"".join(f"{at(n / 50_000)} {'x' * 200} {n}\n".encode() for n in range(100_000))
    found = around(logs(tmp_path, n1=text), 1, lines_max=3)
    assert [int(line.text.split()[-1]) for line in found.lines] == [49_999, 50_000, 50_001]
    assert found.is_cut


def test_a_log_without_a_line_feed_and_a_long_line_are_bounded(tmp_path: Path) -> None:
    read = logs(tmp_path, n1=(f"{at(1)} " + "x" * 3_000_000).encode())
    (found,) = around(read, 1).lines
    assert len(found.text) == LINE_CHARACTERS_MAX
    assert found.text.endswith("…")


def test_hostile_lines_are_printable(tmp_path: Path) -> None:
    (found,) = around(logs(tmp_path, n1=[f"{at(1)} {HOSTILE}"]), 1).lines
    assert found.text.isprintable()


def test_tabs_of_a_stack_are_blanks(tmp_path: Path) -> None:
    lines = [f"{at(5)} closed", "\tat Server.run(Server.java:7)", f"{at(5.1)} opened"]
    assert (
        around(logs(tmp_path, n1=lines), 5.05).lines[1].text == "    at Server.run(Server.java:7)"
    )


def test_a_changed_clock_is_said_unless_the_engine_stamped_the_lines(tmp_path: Path) -> None:
    stamped = f"{at(1, '%Y-%m-%dT%H:%M:%S.%f')}000Z its own time"
    read = logs(tmp_path, {"n1": "clock-jump", "n2": "clock-jump"}, n1=[f"{at(1)} x"], n2=[stamped])
    assert read.notes == [
        "clock-jump changed the clock of n1: its lines have the times that it told."
    ]
    assert [line.text for line in around(read, 1).lines if line.node == "n2"] == ["its own time"]


def test_a_node_with_several_logs_has_them_told_apart(tmp_path: Path) -> None:
    folder = tmp_path / "nodes" / "n1"
    folder.mkdir(parents=True)
    for name in ("output.log", "redis.log", "empty.log"):
        (folder / name).write_text("" if name == "empty.log" else f"{at(1)} x\n")
    found = around(NodeLogs(RunFolder(tmp_path), ["n1"], STARTED, {}), 1)
    assert [line.node for line in found.lines] == ["n1 output.log", "n1 redis.log"]


@pytest.mark.parametrize("started_at", ["", "yesterday"])
def test_without_the_runs_beginning_there_are_no_lines(tmp_path: Path, started_at: str) -> None:
    logs(tmp_path, n1=[f"{at(1)} x"])
    read = NodeLogs(RunFolder(tmp_path), ["n1"], started_at, {})
    assert read.around(S, 10) is None
    assert read.notes == []
