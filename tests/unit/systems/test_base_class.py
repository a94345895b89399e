"""A system that says nothing but how it is deployed and asked claims nothing it may not have."""

from pathlib import Path
from typing import Any

import pytest

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.operations import Client
from splitbrain.contracts.runtime import DeploymentSpec
from splitbrain.contracts.system import LeaderView, Place, Route, System
from splitbrain.systems.redis.adapter import RedisSystem


class SmallSystem(System):
    name = "small"
    node_counts = (1, 3)

    def deployment(
        self, run_id: RunId, run_folder: Path, options: Experiment, place: Place
    ) -> DeploymentSpec:
        return DeploymentSpec(run_id, run_folder, ())

    def ready(self, runtime: Any) -> None:
        return

    def open_client(self, runtime: Any, route: Route) -> Client:
        raise NotImplementedError


def test_an_adapter_without_a_way_to_ask_its_system_cannot_be_made() -> None:
    class Unasked(System):
        name = "unasked"

    made: Any = Unasked
    with pytest.raises(TypeError, match=r"deployment.*open_client.*ready"):
        made()


def test_defaults_claim_no_evidence_and_let_an_answer_speak_for_one_member_alone() -> None:
    system = SmallSystem()
    runtime: Any = None
    declared = (
        system.declares_state_events,
        system.declares_committed_logs,
        system.declares_durable_lengths,
    )
    assert declared == (False, False, False)
    assert system.reads_speak_for == "member"
    assert system.workloads(None) == ("register",)
    assert system.leader(runtime, 1.0) == LeaderView(None, None)
    assert system.metrics(runtime, NodeName("n1"), 1.0) is None
    assert system.simulation() is None


@pytest.mark.parametrize("system", [SmallSystem(), RedisSystem()], ids=lambda made: made.name)
def test_a_log_that_was_not_declared_is_refused_and_not_read_as_empty(
    system: System, tmp_path: Path
) -> None:
    with pytest.raises(HarnessError, match=f"{system.name} keeps no log"):
        system.committed_log(NodeName("n1"), tmp_path)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Experiment(system="small", nodes=2), "2 nodes"),
        (Experiment(system="small", bugs=("lies",)), "'lies'"),
        (Experiment(system="small", settings={"colour": "red"}), "'colour'"),
    ],
)
def test_options_that_the_system_has_not_are_refused(given: Experiment, said: str) -> None:
    SmallSystem().check_options(Experiment(system="small"))
    with pytest.raises(UsageError, match=said):
        SmallSystem().check_options(given)
