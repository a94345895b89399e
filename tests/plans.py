"""A plan of a run, and options of one, for tests in which most of it does not matter."""

from typing import Any

import msgspec

from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import RunId
from splitbrain.harness.run.options import TestOptions
from splitbrain.history.plan import Plan, sub_seeds, voters

_PLAN = Plan(
    run_id=RunId("20261121T020000Z-7"),
    test="kraft-register",
    experiment=Experiment(
        system="kraft",
        workload="register",
        nemesis="kill",
        seed=7,
        time_limit_s=30.0,
        concurrency=6,
        rate=120.0,
    ),
    nodes=voters(3),
    checkers=("split-brain",),
    sub_seeds=sub_seeds(7),
    started_at="2026-11-21T02:00:00Z",
    tool_version="0.1.0",
)


def changed(plan: Plan, **changes: Any) -> Plan:
    """The plan with other fields, its experiment's among them."""
    chosen, others = _of_experiment(changes)
    nodes = others.get("nodes", plan.nodes)
    experiment = msgspec.structs.replace(plan.experiment, **chosen, nodes=len(nodes))
    return msgspec.structs.replace(plan, experiment=experiment, **others)


def plan_with(**changes: Any) -> Plan:
    """A plan of registers on three nodes under kills, but for what is changed."""
    return changed(_PLAN, **changes)


def options_with(**fields: Any) -> TestOptions:
    """Options of a run, the fields of its experiment among them."""
    nodes = {"nodes": fields.pop("nodes")} if "nodes" in fields else {}
    chosen, others = _of_experiment(fields)
    experiment = Experiment(**{"system": "kraft", **chosen, **nodes})
    return TestOptions(experiment=experiment, **others)


def _of_experiment(fields: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields of an experiment, and the others, ``nodes`` among them: a plan names its nodes."""
    chosen = {*Experiment.__struct_fields__} - {"nodes"}
    return (
        {name: value for name, value in fields.items() if name in chosen},
        {name: value for name, value in fields.items() if name not in chosen},
    )
