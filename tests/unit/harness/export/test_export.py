"""Exports of runs: traces that Perfetto opens, spans that a collector takes."""

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.cli.main import run as splitbrain
from splitbrain.harness.console.standard_streams import output
from splitbrain.harness.export.command import FORMATS, ExportOptions, export_run
from splitbrain.harness.export.otlp import otlp_requests
from splitbrain.harness.export.timeline import Timeline
from splitbrain.history.plan import decode_plan
from splitbrain.history.run_folder import RunFolder
from tests.synthetic_runs import SyntheticRun
from tests.unit.harness.export.http_server import HASTY, Answer, answering
from tests.unit.harness.judged_runs import edit, judged

Event = dict[str, Any]
KEPT_RUNS = Path(__file__).parents[3] / "kept_runs"


@pytest.fixture(scope="module")
def stale(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A judged run with a stale read."""
    root = tmp_path_factory.mktemp("runs") / "test" / "stale"
    root.mkdir(parents=True)
    folder = RunFolder(SyntheticRun(root, flaw="stale-read", operations_per_second=40).write())
    judged(folder)
    return folder


def timeline(folder: RunFolder) -> Timeline:
    return Timeline(folder, decode_plan(folder.plan.read_bytes()))


def trace_of(folder: RunFolder) -> list[Event]:
    content = b"".join(FORMATS["perfetto"].parts(timeline(folder)))
    trace = json.loads(content)
    assert trace["displayTimeUnit"] in ("ms", "ns")
    return trace["traceEvents"]


def assert_perfetto_opens(events: list[Event]) -> None:
    """The rules of the format: numbers, names, metadata, and slices of a thread that nest."""
    named = {(event["name"], event["tid"]) for event in events if event["ph"] == "M"}
    processes = {event["pid"] for event in events if event["name"] == "process_name"}
    owners: dict[int, int] = {}
    slices: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for event in events:
        assert type(event["pid"]) is type(event["tid"]) is int
        # A number of a thread that two processes use is taken for a new thread.
        assert owners.setdefault(event["tid"], event["pid"]) == event["pid"]
        assert event["tid"] not in processes
        assert isinstance(event["name"], str)
        assert event["name"]
        if event["ph"] == "M":
            assert event["args"].keys() <= {"name", "sort_index"}
            continue
        assert event["ph"] in ("X", "i")
        assert isinstance(event["ts"], int | float)
        assert event["ts"] >= 0
        assert ("thread_name", event["tid"]) in named
        assert event["pid"] in processes
        if event["ph"] == "X":
            assert event["dur"] >= 0
            slices[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        else:
            assert event["s"] in ("t", "p", "g")
    for found in slices.values():
        found.sort()
        for (_, over), (start, _) in pairwise(found):
            assert start >= over - 0.001, "two of a lane overlap"


def lanes(events: Iterable[Event]) -> dict[str, list[Event]]:
    """Slices and instants by ``process/thread``."""
    events = list(events)
    owners = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    found: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event["ph"] != "M":
            found[f"{owners[event['pid']]}/{threads[event['tid']]}"].append(event)
    return found


def test_a_trace_shows_clients_leaders_faults_and_violations(stale: RunFolder) -> None:
    events = trace_of(stale)
    assert_perfetto_opens(events)
    found = lanes(events)
    assert {f"clients/client {slot}" for slot in range(6)} <= found.keys()
    history = [json.loads(line) for line in stale.history.read_text().splitlines()]
    operations = [e for e in events if e["ph"] == "X" and e["cat"].startswith("operation")]
    assert len(operations) == sum(event["type"] == "invoke" for event in history)
    # To the microsecond, and with the answer that the client saw.
    first = next(event for event in history if event["type"] == "ok")
    invoked = next(e for e in history if e["process"] == first["process"])
    shown = next(e for e in operations if e["args"]["index"] == invoked["index"])
    assert (shown["ts"] * 1000, (shown["ts"] + shown["dur"]) * 1000) == pytest.approx(
        (invoked["time"], first["time"]), abs=1
    )
    assert [e["name"] for e in found["n1/faults"]] == ["partition"]
    assert [e["name"] for e in found["n3/faults"]] == ["pause"]
    kill = found["n2/faults"][0]
    assert (kill["name"], kill["ts"]) == ("kill", 22_000_000)
    assert [e["name"] for e in found["n1/leader"]] == ["epoch 1"]
    (mark,) = found["violations/violations"]
    assert mark["name"] == "stale read"
    assert mark["args"]["account"].startswith("Stale read.")
    assert 8_000_000 <= mark["ts"] <= 32_000_000


def test_faults_of_one_node_at_one_time_have_lanes_of_their_own(tmp_path: Path) -> None:
    folder = RunFolder(SyntheticRun(tmp_path, operations_per_second=10).write())

    def same_node(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        shifts = {1: -7_000_000_000}
        return [
            {**r, "nodes": ["n1"], "time": r["time"] + shifts.get(r["index"], 0)} for r in records
        ]

    edit(folder.faults, same_node)
    events = trace_of(folder)
    assert_perfetto_opens(events)
    assert {"n1/faults", "n1/faults 2"} <= lanes(events).keys()


def test_operations_that_never_ended_and_strange_processes_are_shown(tmp_path: Path) -> None:
    folder = RunFolder(SyntheticRun(tmp_path, operations_per_second=10, processes=2).write())

    def cut(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        # Process 12 takes the slot of process 0 while that is at work; neither ends.
        last = records[-1]["time"] + 1
        begun = [
            {**records[0], "type": "invoke", "process": process, "time": last, "index": 10**6 + n}
            for n, process in enumerate((0, 12))
        ]
        return [r for r in records if r["process"] != 0 or r["time"] < last] + begun

    edit(folder.history, cut)
    events = trace_of(folder)
    assert_perfetto_opens(events)
    open_ones = [e for e in events if e["ph"] == "X" and e["args"].get("outcome") == "unknown"]
    assert {e["args"]["process"] for e in open_ones} >= {0, 12}


@pytest.mark.parametrize(
    "plan", sorted(KEPT_RUNS.rglob("plan.json")), ids=lambda path: path.parts[-2]
)
def test_runs_of_earlier_versions_and_worlds_are_shown(plan: Path) -> None:
    folder = RunFolder(plan.parent)
    assert_perfetto_opens(trace_of(folder))
    spans = [span for r in otlp_requests(timeline(folder)) for span in assert_otlp(json.loads(r))]
    assert len({span["spanId"] for span in spans}) == len(spans) > 1


def test_a_broken_history_is_shown_up_to_its_break(
    stale: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder(SyntheticRun(tmp_path / "run", operations_per_second=10).write())
    lines = folder.history.read_bytes().splitlines(keepends=True)
    folder.history.write_bytes(b"".join(lines[:40]) + b"broken\n" + b"".join(lines[40:]))
    file = tmp_path / "t.json"
    assert splitbrain(["export", str(folder.root), "--output", str(file)]) == 0
    assert "history.jsonl is broken, and shown up to there" in " ".join(
        capsys.readouterr().out.split()
    )
    assert_perfetto_opens(json.loads(file.read_bytes())["traceEvents"])


def test_a_long_history_is_read_as_a_stream(tmp_path: Path) -> None:
    """The first slice is out before the second half of the history is there to be read."""
    folder = RunFolder(SyntheticRun(tmp_path, operations_per_second=10).write())
    line = msgspec.json.decode(folder.history.read_bytes().split(b"\n")[0])
    with folder.history.open("w") as file:
        for number in range(60_000):
            type_ = ("invoke", "ok")[number % 2]
            event = {**line, "index": number, "time": number * 1000, "process": 0, "type": type_}
            file.write(json.dumps(event) + "\n")
    parts = FORMATS["perfetto"].parts(timeline(folder))
    while b'"ph":"X"' not in next(parts):
        pass
    with folder.history.open("rb+") as file:
        file.truncate(8 << 20)
    assert sum(b'"ph":"X"' in part for part in parts) < 29_999


def test_a_file_may_be_packed_and_is_the_same_each_time(stale: RunFolder, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.json.gz", "b.json.gz", "c.json")]
    for file in files:
        assert splitbrain(["export", str(stale.root), "--output", str(file)]) == 0
    packed, again, plain = (file.read_bytes() for file in files)
    assert packed == again
    assert gzip.decompress(packed) == plain
    assert sorted(path.name for path in tmp_path.iterdir()) == [file.name for file in files]


# --- OpenTelemetry --------------------------------------------------------------------------

_HEX = re.compile(r"[0-9a-f]+")


def assert_otlp(request: Any) -> list[Event]:
    """Return the spans of a request that has the shape of OTLP/JSON."""
    spans: list[Event] = []
    for resource in request["resourceSpans"]:
        attributes = {each["key"] for each in resource["resource"]["attributes"]}
        assert "service.name" in attributes
        for scoped in resource["scopeSpans"]:
            assert scoped["scope"]["name"] == "splitbrain"
            spans += scoped["spans"]
    for span in spans:
        assert len(span["traceId"]) == 32
        assert len(span["spanId"]) == 16
        assert all(_HEX.fullmatch(span[name]) for name in ("traceId", "spanId"))
        assert span["kind"] in (1, 3)
        times = span["startTimeUnixNano"], span["endTimeUnixNano"]
        assert all(isinstance(time, str) and time.isdigit() for time in times)
        assert int(times[0]) <= int(times[1])
        assert span["status"].get("code", 0) in (0, 1, 2)
        for each in [
            *span["attributes"],
            *(a for e in span.get("events", []) for a in e["attributes"]),
        ]:
            ((kind, value),) = each["value"].items()
            wanted = {"stringValue": str, "intValue": str, "boolValue": bool}[kind]
            assert type(value) is wanted
    return spans


def exported_to(folder: RunFolder, address: str) -> int:
    options = ExportOptions(format="otlp", to=address)
    return export_run(folder.root, options, output(), HASTY)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def test_a_collector_gets_all_spans_of_the_run_in_batches(
    stale: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20abc, x-tenant=qa")
    with answering(Answer(503), Answer(body=b'{"partialSuccess":{}}')).running() as server:
        assert exported_to(stale, server.address) == 0
    assert {posted.path for posted in server.posted} == {"/v1/traces"}
    assert server.posted[0].headers["authorization"] == "Basic abc"
    assert server.posted[0].headers["x-tenant"] == "qa"
    # The first was refused and came again.
    assert server.posted[0].body == server.posted[1].body
    taken = [assert_otlp(posted.data) for posted in server.posted[1:]]
    assert len(taken) > 1
    assert all(len(batch) <= 1_000 for batch in taken)
    spans = [span for batch in taken for span in batch]
    assert len({span["spanId"] for span in spans}) == len(spans)
    assert len({span["traceId"] for span in spans}) == 1
    sorts = [
        next(
            (a["value"]["stringValue"] for a in s["attributes"] if a["key"] == "splitbrain.sort"),
            "",
        )
        for s in spans
    ]
    invoked = stale.history.read_text().count('"invoke"')
    assert (sorts.count("operation"), sorts.count("fault")) == (invoked, 3)
    assert sorts.count("leader") == 3
    root = spans[-1]
    assert "parentSpanId" not in root
    assert {span["parentSpanId"] for span in spans[:-1]} == {root["spanId"]}
    assert [event["name"] for event in root["events"]] == ["stale read"]
    # 02:00:00 UTC of that day, as its plan says.
    assert root["startTimeUnixNano"] == "1795226400000000000"


def test_ids_are_those_of_the_run(stale: RunFolder) -> None:
    assert list(otlp_requests(timeline(stale))) == list(otlp_requests(timeline(stale)))


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answer(401), "it answered 401, asked for message 1"),
        (Answer(302, {"Location": "/"}), "a redirect, which is not followed"),
        (
            Answer(body=b'{"partialSuccess":{"rejectedSpans":"7","errorMessage":"too old"}}'),
            "it rejected 7 spans: too old",
        ),
    ],
)
def test_a_collector_that_refuses_is_told(stale: RunFolder, answer: Answer, told: str) -> None:
    with answering(answer).running() as server, pytest.raises(HarnessError, match=told):
        exported_to(stale, server.address + "/v1/traces")
    assert {posted.path for posted in server.posted} == {"/v1/traces"}


def test_a_run_of_an_unknown_day_has_no_spans(stale: RunFolder) -> None:
    plan = msgspec.structs.replace(timeline(stale).plan, started_at="yesterday")
    with pytest.raises(HarnessError, match="started_at is not a time"):
        next(otlp_requests(Timeline(stale, plan)))
