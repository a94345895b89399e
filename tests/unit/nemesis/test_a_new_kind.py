"""A fault kind is its file; a new act of it is one line for each who can do it."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import splitbrain.harness.run.acting
import splitbrain.harness.run.world.acting
from splitbrain.contracts.errors import CapabilityError, UsageError
from splitbrain.contracts.fault import Fault
from splitbrain.contracts.runtime import SIMULATED
from splitbrain.harness.campaign.sweep.planned import check_plan
from splitbrain.harness.run.options import plan_test
from splitbrain.harness.run.world.simulate import simulate
from splitbrain.nemesis import families, kinds
from splitbrain.systems.registry import system
from tests.plans import options_with
from tests.unit.harness.fake_cluster import FakeSystem, scenario
from tests.unit.harness.run.driven import Driven

DUMMY = """
from splitbrain.nemesis import acts
from splitbrain.nemesis.fault_kind import Course, Step
from splitbrain.nemesis.fault_kind import FaultKind
from splitbrain.nemesis.families.processes import answering, running


class Nudge(acts.Keep, frozen=True):
    needs = "pause"
    verb = "nudge"


def _nudge(setting, _options):
    hit = setting.hit
    return Course(
        steps=(Step((Nudge(hit),), seen=running(hit)),),
        heal=(acts.Start(hit),),
        healed=running(hit),
        resumed=answering(hit),
    )


KINDS = (
    FaultKind(
        name="nudge", summary="Freezes the target for a moment.", page="processes",
        needs=frozenset({"pause"}), course=_nudge,
    ),
)
"""
NUDGE = Fault(0, "nudge", "leader", 100_000, 200_000, 5)
WHOLE = ["invoked", "verified", "healing", "removed", "resumed"]


@pytest.fixture
def dummy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The family's module."""
    (tmp_path / "nudges.py").write_text(DUMMY)
    monkeypatch.setattr(families, "__path__", [*families.__path__, str(tmp_path)])
    monkeypatch.setattr(kinds, "_KINDS", kinds.found_kinds())
    yield sys.modules["splitbrain.nemesis.families.nudges"]
    sys.modules.pop("splitbrain.nemesis.families.nudges")


@pytest.mark.usefixtures("dummy")
def test_a_new_kind_is_one_file() -> None:
    assert {"kill", "nudge"} <= {*kinds.machine_kind_names()}
    with pytest.raises(UsageError, match="Did you mean 'nudge'"):
        kinds.fault_kind("nugde")
    for runtime in (SIMULATED, "local"):
        plan = plan_test(
            options_with(runtime=runtime, nodes=3, time_limit_s=30.0, nemesis="nudge"),
            system("kraft"),
        )
        assert {fault.kind for fault in plan.schedule} == {"nudge"}
    options = options_with(runtime=SIMULATED, nodes=3, nemesis="nudge")
    check_plan(plan_test(options, system("kraft")))


def test_its_act_is_one_line_for_machines(dummy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Driven([NUDGE])
    assert isinstance(refused.failure, CapabilityError)
    assert "no machine can do that" in str(refused.failure)

    def nudge(runtime: Any, act: Any) -> None:
        for node in act.nodes:
            runtime.pause(node)
            runtime.resume(node)

    monkeypatch.setitem(splitbrain.harness.run.acting._ACTS, dummy.Nudge, nudge)
    run = Driven([NUDGE])
    assert run.failure is None
    assert run.phases() == WHOLE
    assert [call for call in run.world.calls if call.split()[0] in ("pause", "resume")]


def test_its_act_is_one_line_for_worlds(dummy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world = scenario(faults=(NUDGE,))
    refused = simulate(world, FakeSystem()).violation
    assert refused is not None
    assert "no simulated world can do that" in refused.problem

    def nudge(arms: Any, act: Any) -> str:
        for node in act.nodes:
            arms.cluster.pause(node)
            arms.cluster.resume(node)
        return "nudged"

    monkeypatch.setitem(splitbrain.harness.run.world.acting._DOING, dummy.Nudge, nudge)
    outcome = simulate(world, FakeSystem())
    assert [event.phase for event in outcome.faults] == WHOLE
    assert outcome.faults[1].evidence == "n1 runs; nudged"
