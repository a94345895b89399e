"""Records of earlier versions, read as those of this one."""

import json
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.draws import where
from splitbrain.contracts.fault import Awaited, Fault
from splitbrain.contracts.scenario import SCENARIO_SCHEMA
from splitbrain.harness.folder.scenario_file import OtherSchemaError, decode_scenario
from splitbrain.history.schedule_lines import decode_schedule
from splitbrain.history.upgrades import UPGRADES, upgraded_fault
from splitbrain.nemesis.sorts import SORTS

WAITING_1 = {
    "index": 1,
    "kind": "kill",
    "target": "there",
    "at_ms": 1500,
    "duration_ms": 20,
    "draw": 7,
    "options": {"nodes": ["n1"]},
    "when": {"on": "commits", "node": "leader", "epoch": 4, "count": 3, "delay_ms": 2},
}


def scenario_1(*faults: Any) -> bytes:
    return json.dumps({"schema": 1, "system": "kraft", "seed": 7, "faults": faults}).encode()


def moment(**when: Any) -> dict[str, Any]:
    usual = {"index": 0, "kind": "kill", "target": "leader", "duration_us": 30, "draw": 7}
    return {**usual, "when": when}


def test_a_schedule_in_milliseconds_is_one_in_microseconds() -> None:
    (fault,), actual = decode_schedule([json.dumps(WAITING_1).encode()])
    assert actual == ()
    assert fault == Fault(
        *(1, "kill", "there", 1_500_000, 20_000, 7, {"nodes": ["n1"]}),
        when=Awaited("commits", "leader", 4, 3, 2_000, 30_000_000),
    )


def test_a_patience_that_was_written_down_is_kept() -> None:
    when = {"on": "leads", "timeout_ms": 900}
    (fault,), _ = decode_schedule([json.dumps({**WAITING_1, "when": when}).encode()])
    assert fault.when == Awaited("leads", timeout_us=900_000)


def test_records_of_today_are_left_alone() -> None:
    fault = Fault(0, "kill", "leader", 1, 2, 3, when=Awaited("leads"))
    assert upgraded_fault(msgspec.to_builtins(fault)) == msgspec.to_builtins(fault)
    assert decode_schedule([msgspec.json.encode(fault)]) == ((fault,), ())


@pytest.mark.parametrize(
    ("when", "fault"),
    [
        ({"at_us": 5}, Fault(0, "kill", "leader", 5, 30, 7)),
        ({"at_us": 5, "delay_us": 2}, Fault(0, "kill", "leader", 7, 30, 7)),
        ({"on": "x"}, Fault(0, "kill", "leader", 0, 30, 7, when=Awaited("x"))),
        (
            {"on": "x", "node": "n2", "epoch": 3, "count": 2, "delay_us": 9},
            Fault(0, "kill", "leader", 0, 30, 7, when=Awaited("x", "n2", 3, 2, 9)),
        ),
        (
            {"on": "x", "at_leader": True, "from_us": 10, "until_us": 25},
            Fault(0, "kill", "leader", 10, 30, 7, when=Awaited("x", "leader", timeout_us=15)),
        ),
        (
            {"on": "x", "at_us": 99, "delay_us": 9},
            Fault(0, "kill", "leader", 0, 30, 7, when=Awaited("x", delay_us=9)),
        ),
        (
            {"on": "x", "until_us": 25},
            Fault(0, "kill", "leader", 0, 30, 7, when=Awaited("x", timeout_us=25)),
        ),
    ],
)
def test_a_moment_becomes_a_time_and_what_is_waited_for(when: Any, fault: Fault) -> None:
    scenario = decode_scenario(scenario_1(moment(**when)))
    assert (scenario.schema, scenario.faults) == (SCENARIO_SCHEMA, (fault,))


@pytest.mark.parametrize(
    "faults",
    [
        ["no fault"],
        [moment()],
        [moment(at_us="soon")],
        [{**moment(at_us=5), "when": 5}],
        [moment(on="x", until_us="late")],
        [moment(on="x", until_us=3, from_us="soon")],
        [moment(on="x", count={})],
        [moment(on="x", node=3)],
        [moment(on="x", node="n1", at_leader=True)],
    ],
)
def test_what_was_no_scenario_then_is_none_now(faults: list[Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any refusal in words
        decode_scenario(scenario_1(*faults))


@pytest.mark.parametrize("schema", [-1, 0, SCENARIO_SCHEMA + 1, 10**30])
def test_a_scenario_of_an_unknown_version_is_refused(schema: int) -> None:
    with pytest.raises((OtherSchemaError, msgspec.DecodeError)):
        decode_scenario(json.dumps({"schema": schema, "system": "kraft", "seed": 1}))


def test_a_saved_scenario_that_says_no_schema_is_of_the_version_whose_faults_it_has() -> None:
    old = {"system": "kraft", "seed": 7, "faults": [moment(on="x")]}
    assert decode_scenario(json.dumps(old)).faults[0].when == Awaited("x")
    today = {**old, "faults": [msgspec.to_builtins(Fault(0, "kill", "leader", 5, 30, 7))]}
    assert decode_scenario(json.dumps(today)).faults[0].at_us == 5
    assert decode_scenario('{"system": "kraft", "seed": 7}').schema == SCENARIO_SCHEMA


def test_each_scenario_of_an_earlier_version_has_a_way_to_this_one() -> None:
    led_from = {schema for record, schema in UPGRADES if record == "scenario"}
    assert led_from == set(range(1, SCENARIO_SCHEMA))


def fault_2(kind: str, **options: Any) -> dict[str, Any]:
    return msgspec.to_builtins(Fault(0, kind, "leader", 5, 30, 7, options))


@pytest.mark.parametrize(
    ("old", "kind", "options"),
    [
        (fault_2("clog", delay_us=1_500), "delay", {"delay_us": 1_500, "jitter_us": 0}),
        (fault_2("disk-full", spare_bytes=9), "full-disk", {"spare_bytes": 9}),
        (fault_2("stop", until="leads"), "terminate", {"until": "leads"}),
        (fault_2("reset"), "disconnect", {}),
        (fault_2("one-way", direction="inbound"), "one-way-in", {}),
        (fault_2("one-way", direction="outbound", nodes=["n1"]), "one-way-out", {"nodes": ["n1"]}),
        (fault_2("clock-jump", delta_us=-5), "clock-jump", {"offset_us": -5}),
        (fault_2("clock-jump", offset_ms=20, delta_us=20_000), "clock-jump", {"offset_ms": 20}),
        (fault_2("flap", count=2), "flap", {"count": 2}),
        (fault_2("slow-link", delay_us=8), "slow-link", {"delay_us": 8}),
        (fault_2("wipe", after=3), "wipe", {"after": 3}),
    ],
)
def test_a_kind_that_sweeps_named_for_themselves_has_the_name_of_plans(
    old: dict[str, Any], kind: str, options: dict[str, Any]
) -> None:
    scenario = {"schema": 2, "system": "kraft", "seed": 7, "faults": [old]}
    (fault,) = decode_scenario(json.dumps(scenario)).faults
    assert (fault.kind, fault.options) == (kind, options)


def test_what_the_integer_of_a_fault_settled_is_what_sweeps_draw_of_it_now() -> None:
    names = {"delay": "clog", "full-disk": "disk-full", "one-way": "one-way"}
    for name in ("delay", "full-disk", "one-way", "clock-jump", "flap"):
        for draw in range(50):
            old = {**fault_2(names.get(name, name)), "draw": draw}
            scenario = {"schema": 2, "system": "kraft", "seed": 7, "faults": [old]}
            (fault,) = decode_scenario(json.dumps(scenario)).faults
            sort = SORTS[name]
            assert fault.kind == sort.kinds[where(draw).below(len(sort.kinds))]
            assert fault.options == sort.options(draw)
