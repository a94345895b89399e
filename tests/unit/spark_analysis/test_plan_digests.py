"""Runs that count as runs of one plan."""

from typing import Any

import msgspec
import pytest

from splitbrain.contracts.names import RunId
from splitbrain.spark_analysis.run_record import plan_digest
from tests.plans import changed, plan_with

PLAN = plan_with(runtime="simulated", system_versions={"kraft": "1.0"})


def test_a_replay_has_the_plan_of_what_it_replays() -> None:
    replay = msgspec.structs.replace(
        PLAN,
        run_id=RunId("20261122T090000Z-7"),
        started_at="2026-11-22T09:00:00Z",
        tool_commit="c0ffee",
        replay_of="runs/kraft-register/20261121T220000Z-7",
        pinned=True,
        runtime_versions={"python": "3.12"},
    )
    assert plan_digest(replay) == plan_digest(PLAN)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 8},
        {"bugs": ("stale-leader-reads",)},
        {"settings": {"a": "1"}},
        {"system_versions": {"kraft": "1.1"}},
        {"runtime": "docker"},
        {"workload_options": {"keys": 3}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whatever_was_chosen_tells_plans_apart(change: dict[str, Any]) -> None:
    assert plan_digest(changed(PLAN, **change)) != plan_digest(PLAN)
