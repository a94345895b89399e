"""The plan record and the lines of a timeline: what they say, and under which names."""

import random
import shlex
from pathlib import Path

import msgspec
import pytest

from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import RunId
from splitbrain.history.blobs import Blob, unpack
from splitbrain.history.plan import decode_plan, encode_plan, reproduce_command, sub_seed
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.timeline_records import (
    TimelineDisk,
    TimelineFault,
    TimelineLife,
    TimelineLog,
    TimelineMessage,
    TimelineRecord,
    TimelineState,
    TimelineViolation,
)
from tests.plans import changed, plan_with

PLAN = plan_with(
    run_id=RunId("20260101T000000Z-7"),
    bugs=("stale-leader-reads",),
    settings={"fetch.timeout.ms": "500"},
    workload_options={"values": "small"},
    nemesis="partition:leader,kill",
    planned_faults=6,
    time_limit_s=60.0,
    concurrency=10,
    rate=200.0,
)
DEFAULTS = Experiment(system="kraft", workload_options={"values": "small"})


def test_a_plan_comes_back_as_it_was_written() -> None:
    assert decode_plan(encode_plan(PLAN)) == PLAN


def test_a_plan_of_another_layout_is_refused() -> None:
    with pytest.raises(ValueError, match="schema 99"):
        decode_plan(encode_plan(changed(PLAN, schema=99)))


def test_sub_seeds_are_the_same_everywhere_and_differ_by_name() -> None:
    # Figures of the first release: a changed derivation would make every recorded seed void.
    assert sub_seed(1, "workload") == 8862706372187707930
    assert sub_seed(1, "nemesis") == 7651021593190007654
    assert len({sub_seed(seed, name) for seed in range(100) for name in ("a", "b")}) == 200


def test_without_known_defaults_the_reproducing_command_names_everything() -> None:
    words = shlex.split(reproduce_command(PLAN), comments=True)
    assert words[:2] == ["splitbrain", "test"]
    assert dict(zip(words[2::2], words[3::2], strict=True)) == {
        "--system": "kraft",
        "--workload": "register",
        "--nemesis": "partition:leader,kill",
        "--nodes": "3",
        "--time-limit": "60",
        "--seed": "7",
        "--runtime": "docker",
        "--concurrency": "10",
        "--rate": "200",
        "--operation-timeout": "1",
        "--bug": "stale-leader-reads",
        "--setting": "fetch.timeout.ms=500",
        "--workload-option": "values=small",
        "--made-by": "0.1.0",
    }


def test_the_reproducing_command_leaves_out_what_is_usual() -> None:
    assert reproduce_command(PLAN, DEFAULTS) == (
        "splitbrain test --system kraft --workload register --nemesis partition:leader,kill "
        "--nodes 3 --time-limit 60 --seed 7 --runtime docker "
        "--bug stale-leader-reads --setting fetch.timeout.ms=500 --made-by 0.1.0"
    )


def test_a_pinned_replay_without_a_plan_file_is_reproduced_by_a_pinned_replay() -> None:
    replayed = changed(PLAN, replay_of="runs/kraft register/1", pinned=True)
    assert reproduce_command(replayed, DEFAULTS) == (
        "splitbrain replay 'kraft register/1' --pinned --runtime docker --made-by 0.1.0"
    )
    loose = changed(replayed, pinned=False)
    assert reproduce_command(loose, DEFAULTS) == reproduce_command(PLAN, DEFAULTS)


def test_a_plan_file_travels_within_the_line_and_an_old_one_by_its_name() -> None:
    text = "[[faults]]\nkind = 'kill'\n"
    named = changed(PLAN, nemesis="/srv/mine/plans/cut.toml", tool_commit="4795ac6" + 33 * "0")
    words = shlex.split(reproduce_command(changed(named, plan_file=text), DEFAULTS), comments=True)
    blob = unpack(words[words.index("--nemesis") + 1])
    assert blob == Blob("cut.toml", text, "splitbrain 0.1.0, 4795ac6")
    old = reproduce_command(named, DEFAULTS)
    assert " --nemesis cut.toml " in old
    assert old.endswith(" --made-by 0.1.0+4795ac6  # takes the file cut.toml")
    relative = reproduce_command(changed(named, nemesis="plans/cut.toml"), DEFAULTS)
    assert relative.endswith("  # takes the file cut.toml")
    pinned = changed(PLAN, plan_file=text, pinned=True, replay_of="/runs/kraft/1")
    words = shlex.split(reproduce_command(pinned, DEFAULTS), comments=True)
    assert unpack(words[words.index("--nemesis") + 1]).name == "plan.toml"


def test_a_plan_file_that_is_too_long_for_a_line_is_named() -> None:
    noise = "".join(map(chr, random.Random(1).choices(range(33, 127), k=9_000)))
    long = changed(PLAN, nemesis="/srv/mine/cut.toml", plan_file=noise)
    line = reproduce_command(long, DEFAULTS)
    assert " --nemesis cut.toml " in line
    assert line.endswith("  # takes the file cut.toml")


def test_files_of_the_users_own_are_named_without_their_folders() -> None:
    own = changed(PLAN, settings={"file": "/srv/mine/compose.yaml", "driver": "/d/my.py:Mine"})
    line = reproduce_command(changed(own, system_file="/srv/mine/store.py:Store"), DEFAULTS)
    assert "/srv" not in line
    assert "/d/" not in line
    assert " --system store.py:Store " in line
    assert " --setting file=compose.yaml" in line
    assert line.endswith("  # takes the files store.py, my.py, compose.yaml")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"concurrency": 5}, "--concurrency 5"),
        ({"rate": 0.5}, "--rate 0.5"),
        ({"operation_timeout_s": 2.5}, "--operation-timeout 2.5"),
        ({"workload_options": {"values": "unique"}}, "--workload-option values=unique"),
        ({"workload_options": {"other": "small"}}, "--workload-option other=small"),
    ],
)
def test_the_reproducing_command_names_what_was_chosen(
    changes: dict[str, object], named: str
) -> None:
    usual = set(shlex.split(reproduce_command(PLAN, DEFAULTS)))
    words = shlex.split(reproduce_command(changed(PLAN, **changes), DEFAULTS), comments=True)
    assert [word for word in words if word not in usual] == named.split()


LINES = {
    '{"kind":"message","time":5,"node":"n1","peer":"n2","name":"Vote","arrived":9,'
    '"fate":"arrived","detail":"epoch 3, pre-vote","empty":false}': TimelineMessage(
        time=5,
        node="n1",
        peer="n2",
        name="Vote",
        arrived=9,
        fate="arrived",
        detail="epoch 3, pre-vote",
    ),
    '{"kind":"state","time":5,"node":"n1","role":"leader","epoch":4,"leader":"n1","detail":""}': (
        TimelineState(time=5, node="n1", role="leader", epoch=4, leader="n1")
    ),
    '{"kind":"life","time":5,"node":"n1","event":"crashed","detail":""}': TimelineLife(
        time=5, node="n1", event="crashed"
    ),
    '{"kind":"disk","time":5,"node":"n1","name":"fsync failed","until":null,"detail":""}': (
        TimelineDisk(time=5, node="n1", name="fsync failed")
    ),
    '{"kind":"log","time":5,"node":"n1","event":"high-watermark","offset":12,"detail":""}': (
        TimelineLog(time=5, node="n1", event="high-watermark", offset=12)
    ),
    '{"kind":"fault","time":5,"name":"partition","nodes":["n1"],"until":9,"detail":"leader"}': (
        TimelineFault(time=5, name="partition", nodes=("n1",), until=9, detail="leader")
    ),
    '{"kind":"violation","time":5,"name":"INV-02","node":null,"detail":"lost"}': (
        TimelineViolation(time=5, name="INV-02", detail="lost")
    ),
}


@pytest.mark.parametrize("line", LINES)
def test_each_kind_reads_and_writes_the_documented_fields(line: str) -> None:
    record = msgspec.json.decode(line, type=TimelineRecord)
    assert record == LINES[line]
    assert msgspec.json.encode(record).decode() == line


@pytest.mark.parametrize(
    "line",
    [
        '{"kind":"rumour","time":5}',
        '{"time":5,"node":"n1"}',
        '{"kind":"life","time":0.5,"node":"n1","event":"started"}',
        '{"kind":"life","time":5,"node":"n1","event":"reborn"}',
    ],
)
def test_what_is_no_record_is_refused(line: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(line, type=TimelineRecord)


def test_the_timeline_lies_in_the_run_folder() -> None:
    folder = RunFolder(Path("run"))
    assert folder.timeline == Path("run") / "timeline.jsonl"
