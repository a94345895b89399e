"""A plan of a run, for tests in which most of it does not matter."""

import msgspec

from splitbrain.contracts.names import NodeName, RunId
from splitbrain.history.plan import Plan, sub_seeds

_PLAN = Plan(
    run_id=RunId("20261121T020000Z-7"),
    test="kraft-register",
    system="kraft",
    runtime="docker",
    nodes=tuple(NodeName(name) for name in ("n1", "n2", "n3")),
    workload="register",
    checkers=("split-brain",),
    nemesis="kill",
    seed=7,
    sub_seeds=sub_seeds(7),
    time_limit_s=30.0,
    concurrency=6,
    rate=120.0,
    operation_timeout_s=1.0,
    started_at="2026-11-21T02:00:00Z",
    tool_version="0.1.0",
)


def plan_with(**changes: object) -> Plan:
    """A plan of registers on three nodes under kills, but for what is changed."""
    return msgspec.structs.replace(_PLAN, **changes)
