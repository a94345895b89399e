"""Damage to a run folder convicts no system, and a run that failed is not acquitted later."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.names import NodeName
from splitbrain.harness.campaign.gate.selection import select
from splitbrain.harness.campaign.replaying.recorded import replay_options
from splitbrain.harness.folder.manifest import MANIFEST_NAME, open_manifest, write_manifest
from splitbrain.harness.folder.manifest import damage as damage_of
from splitbrain.harness.judge import evidence_loader
from splitbrain.history.run_folder import RunFolder
from tests.synthetic_runs import NODES, seal
from tests.unit.harness.judge.test_mutated_runs import a_read_saw_another_value
from tests.unit.harness.judged_runs import edit, judged_as_it_is, verdict_of

pytestmark = pytest.mark.usefixtures("in_process")


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
def test_a_damaged_dump_convicts_nobody(
    folder: RunFolder, damage: Callable[[Path], object]
) -> None:
    write_manifest(folder)
    for node in NODES[:2]:
        damage(folder.committed_log(node))
    found = judged_as_it_is(folder)
    assert (found.headline, found.exit_code) == ("UNKNOWN", 2)


def test_a_dump_with_a_broken_line_convicts_nobody_of_a_dead_run_either(folder: RunFolder) -> None:
    for node in NODES:
        break_a_line(folder.committed_log(node))
    found = judged_as_it_is(folder)
    assert (found.headline, found.exit_code) == ("UNKNOWN", 2)
    assert verdict_of(found, "lost-commits") is not Verdict.INVALID


def test_a_run_that_ends_while_it_is_read_was_read_in_part(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    living = [True]
    read_history = evidence_loader._read_history

    def read_and_end(*arguments: Any) -> Any:
        living[0] = False
        return read_history(*arguments)

    monkeypatch.setattr(evidence_loader, "is_alive", lambda _: living[0])
    monkeypatch.setattr(evidence_loader, "_read_history", read_and_end)
    assert evidence_loader.load_run(folder.root).living


def test_a_run_whose_last_words_could_not_be_written_is_never_valid(folder: RunFolder) -> None:
    """Its command said so and ended with 3; a later judgement must not forget it."""
    open_manifest(folder)
    found = judged_as_it_is(folder)
    assert (found.headline, found.exit_code) == ("UNKNOWN", 2)
    assert "was not sealed" in found.checkers[-1].reason
    write_manifest(folder)
    assert judged_as_it_is(folder).exit_code == 0


# --- a sealed record convicts nobody by what was put there since ------------------------------


def a_digit_of_the_history(folder: RunFolder) -> None:
    a_read_saw_another_value(folder)


def a_digit_and_its_seal(folder: RunFolder) -> None:
    """An intruder who takes the line out of the manifest as well."""
    a_read_saw_another_value(folder)
    path = folder.root / MANIFEST_NAME
    sealed = json.loads(path.read_text())
    del sealed["history.jsonl"]
    path.write_text(json.dumps(sealed))


def a_digit_without_a_manifest(folder: RunFolder) -> None:
    a_read_saw_another_value(folder)
    (folder.root / MANIFEST_NAME).unlink()


def a_digit_with_an_empty_manifest(folder: RunFolder) -> None:
    a_read_saw_another_value(folder)
    open_manifest(folder)


def a_digit_with_noise_for_a_manifest(folder: RunFolder) -> None:
    a_read_saw_another_value(folder)
    (folder.root / MANIFEST_NAME).write_bytes(b"\xff\xfe{")


def a_traceback_of_a_node(folder: RunFolder) -> None:
    (folder.node(NODES[0]) / "x.log").write_text("Traceback (most recent call last):\nE: x\n")


def a_node_that_led_too(folder: RunFolder) -> None:
    extra = folder.node(NodeName("n9"))
    extra.mkdir()
    told = folder.state_events(NODES[0]).read_text().replace('"n1"', '"n9"')
    folder.state_events(NodeName("n9")).write_text(told)


def a_fault_fewer(folder: RunFolder) -> None:
    edit(folder.faults, lambda records: records[:-1])


def another_checker(folder: RunFolder) -> None:
    a_plan = json.loads(folder.plan.read_text())
    folder.plan.write_text(json.dumps(a_plan | {"checkers": ["linearizability:register"]}))


def a_record_that_is_gone(folder: RunFolder) -> None:
    folder.state_events(NODES[1]).unlink()


def a_name_that_leads_out(folder: RunFolder) -> None:
    """A manifest of somebody else's names what has nothing to do with the run."""
    path = folder.root / MANIFEST_NAME
    sealed = json.loads(path.read_text())
    sealed["../../../../etc/passwd"] = sealed["history.jsonl"]
    path.write_text(json.dumps(sealed))


CHANGES = (
    *(a_digit_of_the_history, a_digit_and_its_seal, a_digit_without_a_manifest),
    *(a_digit_with_an_empty_manifest, a_digit_with_noise_for_a_manifest, a_traceback_of_a_node),
    *(a_node_that_led_too, a_fault_fewer, another_checker, a_record_that_is_gone),
    *(a_name_that_leads_out,),
)


@pytest.mark.parametrize("change", CHANGES)
def test_a_record_that_is_not_as_the_run_left_it_is_unknown(
    folder: RunFolder, change: Callable[[RunFolder], object]
) -> None:
    change(folder)
    found = judged_as_it_is(folder)
    assert (found.headline, found.exit_code) == ("UNKNOWN", 2)
    assert not [result for result in found.checkers if result.violations]
    # Neither has a gate anything to count.
    (run,) = select([str(folder.root)]).runs
    assert run.outcome in ("unjudged", "unknown")
    assert not [result for result in run.checkers if result.verdict is Verdict.INVALID]


def test_a_gate_does_not_count_what_was_judged_before_the_record_was_changed(
    folder: RunFolder,
) -> None:
    assert judged_as_it_is(folder).exit_code == 0
    (run,) = select([str(folder.root)]).runs
    assert (run.outcome, run.has_history) == ("valid", True)
    a_read_saw_another_value(folder)
    (run,) = select([str(folder.root)]).runs
    assert (run.outcome, run.has_history) == ("unjudged", False)
    assert "It is not as the run left it: history.jsonl has grown" in run.sentence


def test_a_manifest_is_read_no_further_than_the_run_folder(folder: RunFolder) -> None:
    a_name_that_leads_out(folder)
    told = damage_of(folder)
    assert told == ["manifest.json names ../../../../etc/passwd, which is no evidence of a run"]


def test_the_missing_manifest_of_a_run_that_came_to_its_end_is_said(folder: RunFolder) -> None:
    (folder.root / MANIFEST_NAME).unlink()
    assert "manifest.json is missing" in judged_as_it_is(folder).checkers[-1].reason
    folder.phases.write_bytes(b"".join(folder.phases.read_bytes().splitlines(keepends=True)[:-2]))
    assert damage_of(folder) == []


def test_a_run_of_before_metrics_and_leaders_were_sealed_is_whole(folder: RunFolder) -> None:
    for path in (folder.metrics, folder.leaders):
        path.write_text("\n")
    assert judged_as_it_is(folder).exit_code == 0


@pytest.mark.parametrize("name", ["plan.json", "schedule.jsonl"])
def test_the_plan_of_another_run_is_not_replayed(folder: RunFolder, name: str) -> None:
    path = folder.root / name
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(UsageError, match=f"{name} was changed since the run"):
        replay_options(folder.root, pinned=False)


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
    folder: RunFolder, name: str, damage: Callable[[bytes], bytes]
) -> None:
    path = folder.root / name
    lines = path.read_bytes().split(b"\n")
    whole = b"\n".join(lines) if name == "plan.json" else lines[1]
    damaged = damage(whole)
    if damaged == whole:  # The record has no such field: a log's texts are digests, for one.
        damaged = damage(whole[:-1] + b',"detail":"x","time":1}')
    lines[1] = damaged
    path.write_bytes(damaged if name == "plan.json" else b"\n".join(lines))
    # Sealed as it is now, so that the readers find it and not the seal.
    seal(folder)
    found = judged_as_it_is(folder)
    assert (found.headline, found.exit_code) == ("UNKNOWN", 2)
    said = " ".join([check.reason for check in found.checkers])
    assert "crashed" not in said
    assert "codec" not in said
