"""A system that says nothing but how it is deployed and asked claims nothing it may not have."""

from pathlib import Path
from typing import Any

import pytest

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.operations import Client
from splitbrain.contracts.runtime import DeploymentSpec
from splitbrain.contracts.system import LeaderView, Place, Route, System, Tempo
from splitbrain.harness.run.options import plan_test
from splitbrain.harness.run.stage import Timing
from splitbrain.history.plan import Noticing
from splitbrain.nemesis.aim import Patience
from splitbrain.systems.redis.adapter import RedisSystem
from tests.plans import options_with


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


def test_its_tempo_reaches_the_waits_and_the_faults_and_its_experiment_the_adapter() -> None:
    class Late(SmallSystem):
        def tempo(self) -> Tempo:
            assert self.experiment is not None
            notices_s = float(self.experiment.settings["notices"])
            return Tempo(ready_s=200, started_s=40, notices_s=notices_s)

        def check_options(self, options: Experiment) -> None:
            return

    late, options = (
        Late(),
        options_with(
            system="small",
            runtime="local",
            nodes=3,
            nemesis="pause,partition",
            time_limit_s=120.0,
            settings={"notices": "20"},
        ),
    )
    planned = plan_test(options, late)
    assert planned.schedule[0].duration_us >= 30_000_000
    assert late.experiment == planned.experiment
    assert planned.experiment.workload == "register"
    timing = Timing.of(late.tempo())
    assert (timing.ready_s, timing.nemesis.started_us) == (200, 40_000_000)
    assert Timing.of(Tempo()).nemesis == Patience()
    waits = [Timing.of(Tempo(converged_s=30.0), limit_s).converged_s for limit_s in (None, 9, 90)]
    assert waits == [30, 30, 90]


def noticing(notices_s: float, nemesis: str, time_limit_s: float) -> tuple[Noticing, list[float]]:
    """The need of a system that notices a silence so late, and the lengths of the silent faults."""

    class Late(SmallSystem):
        def tempo(self) -> Tempo:
            return Tempo(notices_s=notices_s)

    options = options_with(
        system="small", runtime="local", nodes=3, nemesis=nemesis, time_limit_s=time_limit_s
    )
    planned = plan_test(options, Late())
    assert planned.noticing is not None
    silent = [fault for fault in planned.schedule if fault.kind in planned.noticing.kinds]
    return planned.noticing, [fault.duration_us / 1e6 for fault in silent]


@pytest.mark.parametrize("nemesis", ["partition", "pause:n1", "partition,pause,kill"])
@pytest.mark.parametrize("notices_s", [5.0, 62.0])
def test_the_time_limit_that_is_named_draws_faults_that_the_system_notices(
    nemesis: str, notices_s: float
) -> None:
    told, lengths = noticing(notices_s, nemesis, 12.0)
    assert all(length < notices_s for length in lengths)
    assert told.after_s == notices_s
    assert told.time_limit_s is not None
    again, lengths = noticing(notices_s, nemesis, told.time_limit_s)
    assert again.time_limit_s is None
    assert max(lengths) > notices_s


def test_nothing_is_advised_for_faults_that_need_no_noticing_or_are_given(tmp_path: Path) -> None:
    assert noticing(62.0, "kill", 15.0)[0].time_limit_s is None
    plan = tmp_path / "plan.toml"
    plan.write_text('[[faults]]\nkind = "pause"\ntarget = "n1"\nat_ms = 3000\nduration_ms = 2000\n')
    told, lengths = noticing(62.0, str(plan), 15.0)
    assert (told.time_limit_s, lengths) == (None, [2.0])
    assert plan_test(options_with(system="small", runtime="local"), SmallSystem()).noticing is None


def test_faults_without_a_target_hit_one_node_by_chance_where_nobody_says_who_leads() -> None:
    def targets(system: System, nemesis: str) -> set[str]:
        options = options_with(system="small", runtime="local", nodes=3, nemesis=nemesis)
        return {fault.target for fault in plan_test(options, system).schedule}

    assert targets(SmallSystem(), "pause,partition,kill") == {"random:1"}
    # The user's own word stands, and so does a kind's only target.
    assert targets(SmallSystem(), "pause:follower") == {"follower"}
    assert targets(SmallSystem(), "rolling-restart") == {"all"}
    assert "leader" in targets(RedisSystem(), "pause,partition,kill")
