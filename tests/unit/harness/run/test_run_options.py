"""Options, and recorded runs turned into options again."""

import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.errors import CapabilityError, UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.fault import Awaited
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.harness.campaign.replaying.recorded import replay_options
from splitbrain.harness.folder.tool_version import this_tool
from splitbrain.harness.judge.reproduction import defaults_of
from splitbrain.harness.run.options import prepare
from splitbrain.harness.run.plan_record import plan_of
from splitbrain.history.plan import Plan, decode_plan, reproduce_command
from splitbrain.history.reproduce_line import maker_words
from tests.unit.harness.run_fake import FakeRun, fault


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"nodes": 0}, "--nodes cannot be 0"),
        ({"rate": 0.0}, "--rate cannot be 0"),
        ({"concurrency": 0}, "--concurrency cannot be 0"),
        ({"time_limit_s": -1.0}, "--time-limit cannot be -1"),
        ({"bugs": ("stale-leader-read",)}, "Did you mean 'stale-leader-reads'"),
        ({"workload": "registr"}, "Did you mean 'register'"),
        ({"nemesis": "partion"}, "Did you mean 'partition'"),
        ({"nemesis": "isolate-leadr"}, "Did you mean 'isolate-leader'"),
        ({"nemesis": "missing.json"}, "missing.json cannot be read"),
    ],
)
def test_wrong_options_are_told_in_one_sentence(tmp_path: Path, options: Any, says: str) -> None:
    run = FakeRun(tmp_path, **options)
    with pytest.raises(UsageError, match=says) as caught:
        run.run()
    assert caught.value.exit_code == 64
    assert list(tmp_path.iterdir()) == []


def test_a_controller_is_a_target_where_there_is_one(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, schedule=(fault("kill", "controller"),))
    with pytest.raises(UsageError, match="has no controller: who leads there decides about all"):
        prepare(run.options, run.system, lambda: run.runtime)
    run.system.names_controllers = True
    (planned,) = prepare(run.options, run.system, lambda: run.runtime).schedule
    assert planned.target == "controller"


def test_a_plan_beyond_the_runtime_is_refused_before_anything_starts(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, schedule=(fault("partition"),))
    run.runtime.can = frozenset({"kill"})
    with pytest.raises(CapabilityError):
        run.run()
    assert run.runtime.calls == []


def test_power_is_refused_for_a_system_that_does_not_tell_what_it_has_flushed(
    tmp_path: Path,
) -> None:
    run = FakeRun(tmp_path, schedule=(fault("power"),))
    run.runtime.can = frozenset({"power"})
    prepare(run.options, run.system, lambda: run.runtime)
    run.system.declares_durable_lengths = False
    with pytest.raises(CapabilityError, match=r"power.*on runtime fake.*Use --runtime docker"):
        run.run()
    assert run.runtime.calls == []
    # Disks of their own take what was not flushed, whatever the nodes tell.
    run.runtime.cuts_power_by_durable_lengths = False
    prepare(run.options, run.system, lambda: run.runtime)


def test_a_change_of_members_is_refused_for_a_system_without_the_means(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, schedule=(fault("remove-member"),))
    run.runtime.can = frozenset({"kill", "wipe"})
    with pytest.raises(CapabilityError, match=r"its adapter has no request for that.*docs faults"):
        run.run()
    assert run.runtime.calls == []
    members: Any = object()
    run.system.members = lambda runtime: members
    prepare(run.options, run.system, lambda: run.runtime)
    run.runtime.can = frozenset({"kill"})
    with pytest.raises(CapabilityError, match="it cannot do wipe here"):
        prepare(run.options, run.system, lambda: run.runtime)


@pytest.mark.parametrize(
    ("target", "when"), [("laggard", None), ("leader", Awaited("commits", "leader"))]
)
def test_what_needs_state_events_is_refused_for_a_system_without_them(
    tmp_path: Path, target: str, when: Awaited | None
) -> None:
    scheduled = msgspec.structs.replace(fault("kill", target), when=when)
    run = FakeRun(tmp_path, schedule=(scheduled,))
    prepare(run.options, run.system, lambda: run.runtime)
    run.system.declares_state_events = False
    with pytest.raises(CapabilityError, match="tell no state events"):
        prepare(run.options, run.system, lambda: run.runtime)


def test_a_pace_that_is_faster_than_timeout_and_failover_is_refused(tmp_path: Path) -> None:
    plan_file = tmp_path / "plan.toml"
    plan_file.write_text('nemesis = "kill"\n[pace]\ncalm_min_ms = 100\nfault_min_ms = 100\n')
    run = FakeRun(tmp_path, nemesis=str(plan_file), time_limit_s=20.0)
    with pytest.raises(UsageError, match="an interval of 200 ms between faults is shorter"):
        run.run()


def test_a_plan_file_brings_its_settings_unless_the_user_has_some(tmp_path: Path) -> None:
    fault_line = '{"kind": "kill", "target": "leader", "at_ms": 3000, "duration_ms": 2000}'
    plan_file = tmp_path / "plan.json"
    plan_file.write_text(
        f'{{"faults": [{fault_line}], "settings": {{"fake": {{"fetch_timeout_ms": "2000"}}}}}}'
    )

    def settings(**options: Any) -> dict[str, str]:
        run = FakeRun(tmp_path, nemesis=str(plan_file), time_limit_s=12.0, **options)
        run.system.name = "fake"
        return prepare(run.options, run.system, lambda: run.runtime).experiment.settings

    assert settings() == {"fetch_timeout_ms": "2000"}
    assert settings(settings={"a_ms": "1"}) == {"a_ms": "1"}


def drawn(tmp_path: Path, value: str, seed: int) -> str:
    """Value in force of a setting that the system declares with two values."""
    run = FakeRun(tmp_path, settings={"one_ms": value, "other_ms": "kept"}, seed=seed)
    run.system.settings = {"one_ms": ("yes", "no"), "other_ms": "1"}
    found = prepare(run.options, run.system, lambda: run.runtime).experiment.settings
    assert found["other_ms"] == "kept"
    return found["one_ms"]


@pytest.mark.parametrize(
    ("value", "may_be"),
    [
        ("drawn", {"yes", "no"}),
        ("drawn:3,x y,5", {"3", "x y", "5"}),
        ("drawn:7", {"7"}),
        ("drawn:0..2", {"0", "1", "2"}),
        ("drawn:4..4", {"4"}),
        ("drawing", {"drawing"}),
    ],
)
def test_a_setting_is_drawn_by_the_seed_where_asked(
    value: str, may_be: set[str], tmp_path: Path
) -> None:
    assert {drawn(tmp_path, value, seed) for seed in range(40)} == may_be
    assert drawn(tmp_path, value, 3) == drawn(tmp_path, value, 3)


def test_small_numbers_are_drawn_as_often_as_large_ones(tmp_path: Path) -> None:
    numbers = [int(drawn(tmp_path, "drawn:10..10000", seed)) for seed in range(150)]
    shares = [sum(10**at <= number < 10 ** (at + 1) for number in numbers) for at in (1, 2, 3)]
    assert min(shares) >= 30
    assert len(set(numbers)) > 100


@pytest.mark.parametrize("value", ["drawn:,", "drawn:1,,2", "drawn:9..3"])
def test_a_setting_that_has_nothing_to_draw_from_is_refused(value: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the setting one_ms of .* names no values"):
        drawn(tmp_path, value, 1)


def test_a_system_s_workload_options_hold_unless_the_user_gives_others(tmp_path: Path) -> None:
    def made(**given: Any) -> dict[str, Any]:
        run = FakeRun(tmp_path, **given)

        class Promising(type(run.system)):
            def workload_options(self, workload: str) -> dict[str, str]:
                return {"values": "unique"} if workload == "register" else {"none": "such"}

        run.system = Promising(run.quorum)
        return prepare(run.options, run.system, lambda: run.runtime).workload.options()

    assert made()["values"] == "unique"
    assert made(workload_options={"cas": "no"}) == {**made(), "cas": "no"}
    assert made(workload_options={"values": "small"})["values"] == "small"
    with pytest.raises(UsageError, match="none"):
        made(workload="set")


@pytest.mark.parametrize("serve", [True, False])
def test_clients_ask_observers_where_these_serve(tmp_path: Path, serve: bool) -> None:
    run = FakeRun(tmp_path)
    observer = NodeName("o1")

    class Observed(type(run.system)):
        observers_serve = serve

        def observers(self, options: Experiment) -> tuple[NodeName, ...]:
            return (observer,)

    run.system = Observed(run.quorum)
    test = prepare(run.options, run.system, lambda: run.runtime)
    assert test.observers == (observer,)
    assert test.all_nodes[-1] == observer
    assert test.asked_observers == ((observer,) if serve else ())


def test_a_replay_repeats_plan_and_schedule_and_pins_on_demand(tmp_path: Path) -> None:
    first = FakeRun(tmp_path, schedule=(fault("kill", duration_ms=200),), time_limit_s=0.7)
    folder = first.run().folder
    again = replay_options(folder.root, pinned=False)
    recorded = decode_plan(folder.plan.read_bytes()).experiment
    assert again.schedule == first.options.schedule
    assert (again.experiment, again.replay_of) == (recorded, str(folder.root))
    assert again.runs_folder == tmp_path
    pinned = replay_options(folder.root, pinned=True)
    assert pinned.schedule is not None
    (hit,) = pinned.schedule
    assert hit.options == {"nodes": ["n1"]}
    second = FakeRun(tmp_path)
    second.options = msgspec.structs.replace(pinned, schedule=pinned.schedule)
    assert second.run().failure is None
    assert replay_options(second.outcome.folder.root, pinned=False).pinned is False


def test_a_replay_of_a_torn_schedule_is_refused(tmp_path: Path) -> None:
    first = FakeRun(tmp_path, schedule=(fault("kill", duration_ms=200),), time_limit_s=0.7)
    folder = first.run().folder
    folder.schedule.write_bytes(folder.schedule.read_bytes()[:30])
    with pytest.raises(UsageError, match="holds 0 of 1 planned faults"):
        replay_options(folder.root, pinned=False)


# --- the line that reproduces a run -----------------------------------------------------------


def plan(tmp_path: Path, **options: Any) -> Plan:
    usual = Experiment(system="fake")
    run = FakeRun(
        tmp_path, **{"rate": usual.rate, "operation_timeout_s": usual.operation_timeout_s} | options
    )
    test = prepare(run.options, run.system, lambda: run.runtime)
    return plan_of(test, "fake-register", RunId("20260101T000000Z-1"))


def test_a_plan_of_usual_choices_gives_a_short_command(tmp_path: Path) -> None:
    usual = plan(tmp_path)
    maker = shlex.join(maker_words(this_tool()))
    assert reproduce_command(usual, defaults_of(usual)) == (
        "splitbrain test --system fake --workload register --nemesis none --nodes 3 "
        f"--time-limit 1.2 --seed 1 --runtime fake {maker}"
    )
    chosen = plan(tmp_path, concurrency=4, workload_options={"values": "unique"})
    assert reproduce_command(chosen, defaults_of(chosen)).endswith(
        f" --runtime fake --concurrency 4 --workload-option values=unique {maker}"
    )


def test_the_defaults_of_another_version_are_not_known(tmp_path: Path) -> None:
    assert defaults_of(msgspec.structs.replace(plan(tmp_path), tool_version="0.0.0")) is None
