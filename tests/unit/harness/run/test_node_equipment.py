"""Nodes have disks, clocks and limits of their own only where the plan needs them."""

from pathlib import Path

import pytest

from splitbrain.contracts.names import RunId
from splitbrain.contracts.runtime import DeploymentSpec
from splitbrain.harness.run.options import equipped
from splitbrain.nemesis.kinds import fault_kind, machine_kind_names
from splitbrain.nemesis.plan import needs
from tests.unit.harness.run_fake import FakeRun, fault

DISKS = {
    *("power", "full-disk", "disk-stall", "disk-error", "flip", "truncate", "restore", "wipe"),
    "remove-member",
}
CLOCKS = {"clock-jump", "clock-drift", "clock-strobe"}
LIMITS = {"cpu", "memory"}


def equipment(spec: DeploymentSpec) -> tuple[str, str, str]:
    return spec.disks, spec.clocks, spec.limits


@pytest.mark.parametrize("kind", machine_kind_names())
def test_a_kind_brings_what_it_needs_and_nothing_else(kind: str) -> None:
    plan = [fault(kind, fault_kind(kind).first_target)]
    assert equipment(equipped(DeploymentSpec(RunId("r"), Path(), ()), needs(plan))) == (
        "own" if kind in DISKS else "plain",
        "own" if kind in CLOCKS else "true",
        "own" if kind in LIMITS else "none",
    )


@pytest.mark.parametrize(
    ("kinds", "found"),
    [
        ((), ("plain", "true", "none")),
        (("kill", "partition"), ("plain", "true", "none")),
        (("kill", "clock-jump"), ("plain", "own", "none")),
        (("power", "cpu"), ("own", "true", "own")),
    ],
)
def test_a_run_deploys_its_nodes_so(
    tmp_path: Path, kinds: tuple[str, ...], found: tuple[str, str, str]
) -> None:
    # After the end of the load: what the plan names decides, not what comes of it.
    plan = tuple(fault(kind, index=number, at_ms=300) for number, kind in enumerate(kinds))
    run = FakeRun(tmp_path, schedule=plan, time_limit_s=0.2)
    run.runtime.can = needs(plan)
    run.run()
    assert equipment(run.runtime.spec) == found
