"""A system that others wrote, in containers: it loses what it acknowledged, and nothing else does.

Scripted and aimed, so they gate: Redis with Sentinel replicates asynchronously, and a primary that
is cut off from its replicas goes on acknowledging until it is told that it was deposed.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from splitbrain.history.run_folder import RunFolder
from tests.containers.real_runs import leftovers, run

pytestmark = [pytest.mark.containers, pytest.mark.timeout(400)]

REDIS = ("--system", "redis", "--workload", "set")
#: Time for half a dozen elections: on a busy machine the Sentinels split the votes of the first.
ISOLATED_FOR_LONG = """
[[faults]]
kind = "partition"
target = "leader"
at_ms = 3000
duration_ms = 16000
"""


def acknowledged_adds(folder: RunFolder) -> dict[tuple[str, int], str]:
    """Set and element of every acknowledged add, with the node that acknowledged it."""
    events: list[dict[str, Any]] = [
        json.loads(line) for line in folder.history.read_text().splitlines()
    ]
    return {
        (event["key"], event["value"]): event["node"]
        for event in events
        if event["f"] == "add" and event["type"] == "ok"
    }


def test_an_isolated_primary_loses_acknowledged_elements_by_a_named_fault(tmp_path: Path) -> None:
    plan = tmp_path / "isolated.toml"
    plan.write_text(ISOLATED_FOR_LONG)
    code, found, output = run(tmp_path, *REDIS, "--nemesis", str(plan), "--time-limit", "23")
    assert code == 1, output
    (fault,) = found.faults
    assert fault.verified
    assert fault.healed
    verdicts = {result.checker: result for result in found.checkers}
    # Checkers of logs and state events are not asked of a system that has none.
    assert set(verdicts) == {"set-full", "member-digests", "node-health", "record"}
    # Nobody diverges: what the old primary alone had is gone once it follows another.
    assert verdicts["member-digests"].verdict.value == "valid"
    judged = verdicts["set-full"]
    assert judged.verdict.value == "invalid"
    assert found.vacuous == ()
    # The report names the lost ones, who acknowledged them, and the fault.
    worst = judged.lists["lost-by-fault"][0]
    assert (worst["fault"], worst["when"], worst["node"]) == (0, "during", fault.leader)
    assert worst["count"] > 100
    assert f"acknowledged by {fault.leader} during fault 0 (partition:leader on" in judged.reason
    assert "acknowledged elements are lost" in output
    folder = RunFolder(Path(found.run_folder))
    acknowledged = acknowledged_adds(folder)
    lost = {(row["key"], row["value"]): row["node"] for row in judged.lists["lost"]}
    assert len(lost) == judged.figures["lost"]
    assert lost.items() <= acknowledged.items()
    # Clients that follow were served by the new primary meanwhile.
    assert {fault.leader} < set(acknowledged.values())
    assert leftovers(found.run_folder) == ""
    assert folder.summary.read_text().count("during fault 0") >= 1


@pytest.mark.nightly
def test_without_a_fault_nothing_is_lost(tmp_path: Path) -> None:
    code, found, output = run(tmp_path, *REDIS, "--nemesis", "none", "--time-limit", "8")
    assert code == 0, output
    assert {result.verdict.value for result in found.checkers} == {"valid"}
    assert found.vacuous == ()
    (judged,) = (result for result in found.checkers if result.checker == "set-full")
    assert judged.figures["acknowledged"] > 500
    assert judged.lists == {}
    lines = RunFolder(Path(found.run_folder)).metrics.read_text().splitlines()
    told = [line["system"] for line in map(json.loads, lines) if line["system"]]
    assert {figures["leads"] for figures in told} == {0, 1}
    # Of a member whose Sentinel did not answer in time the rest is told.
    assert any("config_epoch" in figures for figures in told)


QUEUE = ("--system", "redis", "--workload", "queue")


# The same cut in sets gates each change, and so does a queue that loses, of
# tests/integration/test_queue_system.py.
@pytest.mark.nightly
def test_an_isolated_primary_loses_elements_of_queues(tmp_path: Path) -> None:
    code, found, output = run(
        tmp_path, *QUEUE, "--nemesis", "isolate-leader-8s", "--time-limit", "15"
    )
    assert code == 1, output
    verdicts = {result.checker: result for result in found.checkers}
    assert set(verdicts) == {"queue-totals", "member-digests", "node-health", "record"}
    judged = verdicts["queue-totals"]
    assert judged.figures["lost"] > 20
    # Elements are still taken at the end, and each queue was drained.
    assert judged.figures["not-drained"] == judged.figures["never-looked-for"] == 0
    assert found.vacuous == ()
    assert leftovers(found.run_folder) == ""


def test_without_a_fault_a_queue_is_in_order_and_drained(tmp_path: Path) -> None:
    options = ("--workload-option", "promise=fifo", "--nemesis", "none", "--time-limit", "8")
    code, found, output = run(tmp_path, *QUEUE, *options)
    assert code == 0, output
    names = {result.checker for result in found.checkers}
    assert {"linearizability:fifo-queue", "queue-totals"} < names
    (judged,) = (result for result in found.checkers if result.checker == "queue-totals")
    assert judged.figures["acknowledged"] == judged.figures["dequeued"] > 300
    events = map(json.loads, RunFolder(Path(found.run_folder)).history.read_text().splitlines())
    final = [event for event in events if event.get("final") and event["type"] == "ok"]
    assert any(event["value"] is not None for event in final)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "workload",
    ["bank", "counter", "kv", "lease", "multi-register", "mutex", "sessions", "unique-ids"],
)
def test_commands_and_scripts_take_effect_at_one_moment(workload: str, tmp_path: Path) -> None:
    options = ("--workload", workload, "--nemesis", "none", "--time-limit", "10")
    code, found, output = run(tmp_path, "--system", "redis", *options)
    assert code == 0, output
    assert found.vacuous == ()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("workload", "judge"),
    [("counter", "counter-bounds"), ("unique-ids", "unique-ids"), ("sessions", "sessions")],
)
def test_an_isolated_primary_breaks_what_it_promised(
    workload: str, judge: str, tmp_path: Path
) -> None:
    options = ("--workload", workload, "--nemesis", "isolate-leader-8s", "--time-limit", "15")
    code, found, output = run(tmp_path, "--system", "redis", *options)
    assert code == 1, output
    assert judge in {each.checker for each in found.checkers if each.verdict.value == "invalid"}
