"""Worlds whose nodes are Kafka's controllers, with brokers and snapshots: drawn, and sound."""

import random
from collections import Counter
from typing import Final

import msgspec
import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.scenario import Scenario
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.campaign.sweep.swarm import draw_scenario
from splitbrain.harness.campaign.sweep.trial import draw, run
from splitbrain.harness.judge.simulated_outcomes import judged
from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.registers.commands import Add, encode_command
from splitbrain.nodes.registers.machine import RegisterMachine
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.snapshots import encode_snapshot
from splitbrain.simulation.kraft.system import KraftSimulation
from splitbrain.simulation.world.world import SimulatedWorld
from tests.unit.simulation.kraft.small_controllers import Controllers, beat


@pytest.mark.parametrize("through_codec", [False, True])
def test_controllers_register_with_whoever_leads_and_again_in_each_life(
    *, through_codec: bool
) -> None:
    controllers = Controllers(through_codec=through_codec)
    before = controllers.registered
    assert sorted(before) == [1, 2, 3]
    leader = controllers.cluster.leader().leader
    assert leader is not None
    others = [node for node in controllers.cluster.nodes if node != leader]
    number = int(others[0][1:])
    controllers.cluster.power_off([others[0]], 0)
    controllers.cluster.start(others[0])
    controllers.until(
        lambda: controllers.registered[number].incarnation_id != before[number].incarnation_id
    )
    rest = {1, 2, 3} - {number}
    assert all(controllers.registered[other] == before[other] for other in rest)


def test_messages_and_frames_make_the_same_world() -> None:
    plain, framed = Controllers(), Controllers(through_codec=True)
    assert plain.world.now == framed.world.now
    assert plain.ghost.committed == framed.ghost.committed


def test_a_new_leader_goes_on_with_what_is_committed() -> None:
    controllers = Controllers()
    leader = controllers.cluster.leader().leader
    assert leader is not None
    known = controllers.metadata
    controllers.cluster.power_off([leader], 0)
    controllers.until(lambda: controllers.cluster.leader().leader not in (None, leader))
    end = len(controllers.ghost.committed)
    controllers.until(lambda: len(controllers.ghost.committed) > end + 3)
    controllers.cluster.start(leader)
    controllers.until(lambda: controllers.cluster.unlike(controllers.cluster.nodes) is None)
    assert controllers.metadata.metadata_version == known.metadata_version
    assert controllers.ledger.problem is None


def test_snapshots_of_metadata_are_written_and_lived_on() -> None:
    controllers = Controllers()
    controllers.until(lambda: controllers.ghost.counts["cuts"] > 6)
    for node in controllers.cluster.nodes:
        controllers.cluster.power_off([node], 0)
        controllers.cluster.start(node)
        controllers.run(1_000_000)
    controllers.until(lambda: controllers.cluster.unlike(controllers.cluster.nodes) is None)


@pytest.mark.parametrize("through_codec", [False, True])
def test_who_is_not_active_refuses_a_broker_s_call(*, through_codec: bool) -> None:
    controllers = Controllers(through_codec=through_codec)
    leader = controllers.cluster.leader().leader
    request = beat(1, 9, 1)
    codes = {node: controllers.call(node, request).error_code for node in controllers.cluster.nodes}
    assert leader is not None
    assert codes.pop(leader) == ApiError.STALE_BROKER_EPOCH
    assert set(codes.values()) == {ApiError.NOT_CONTROLLER}


def test_a_scenario_of_an_unknown_state_machine_is_refused() -> None:
    scenario = Scenario(system="kraft", seed=1, state_machine="abacus")
    with pytest.raises(UsageError, match="no state machine 'abacus'"):
        SimulatedWorld(scenario, KraftSimulation())


#: An image is larger than registers, and a broker has to catch up with it.
SNAPSHOTS = ("snapshot_max_new_record_bytes", "fetch_snapshot_max_bytes")
TRIAL = SimOptions(system="kraft", state_machine="metadata")


def undressed(seed: int) -> Scenario:
    """Return the world of a seed before its state machine adds to it."""
    system = KraftSimulation()
    return draw_scenario(seed, system="kraft", happenings=system.happenings, hints=system)


def test_the_usual_state_machine_leaves_a_world_as_it_was() -> None:
    for seed in range(20):
        named = draw(seed, SimOptions(system="kraft", state_machine="registers"))
        assert named == draw(seed, SimOptions(system="kraft"))


def test_a_world_with_metadata_is_the_same_world_but_for_what_that_needs() -> None:
    for seed in range(20):
        plain, dressed = undressed(seed), draw(seed, TRIAL)
        assert 1 <= dressed.observers <= 3
        assert dressed.load.workload == "topics"
        others = {name: text for name, text in plain.settings.items() if name not in SNAPSHOTS}
        assert others.items() <= dressed.settings.items()
        back = msgspec.structs.replace(
            dressed,
            state_machine=plain.state_machine,
            observers=plain.observers,
            faults=dressed.faults[: len(plain.faults)],
            settings=plain.settings,
            load=plain.load,
            recovery=plain.recovery,
        )
        assert back == plain
        load = msgspec.structs.replace(
            dressed.load,
            workload=plain.load.workload,
            workload_options=plain.load.workload_options,
        )
        assert load == plain.load


def test_a_session_is_several_heartbeats_long() -> None:
    simulation, stream = KraftSimulation(), random.Random(1)
    brokers: Counter[int] = Counter()
    for seed in range(60):
        world = simulation.dressed(undressed(seed), "metadata", stream)
        brokers[world.observers] += 1
        session_ms = int(world.settings["broker_session_timeout_ms"])
        assert session_ms // int(world.settings["heartbeat_interval_ms"]) >= 3
    assert set(brokers) == {1, 2, 3}


def test_brokers_end_in_order_and_crash_besides_what_befalls_any_node() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(40):
        plain, dressed = undressed(seed), draw(seed, TRIAL)
        added = dressed.faults[len(plain.faults) :]
        brokers = {f"n{dressed.nodes + 1 + place}" for place in range(dressed.observers)}
        assert {fault.target for fault in added} <= brokers
        assert len({fault.index for fault in dressed.faults}) == len(dressed.faults)
        kinds.update(fault.kind for fault in added)
    assert set(kinds) == {"terminate", "kill", "pause"}


@pytest.mark.parametrize("seed", [2, 3])
def test_a_drawn_world_with_metadata_raises_no_alarm_and_does_work(seed: int) -> None:
    seen = judged(run(draw(seed, TRIAL)))
    assert seen.failed_by == ()
    assert seen.outcome.violation is None
    done = Counter(event.f for event in seen.outcome.events if event.type == "ok")
    assert {"create", "delete", "describe", "view"} <= set(done)
    assert seen.outcome.figures["commits"] > 50
    logs = seen.outcome.committed_logs
    assert all(any(record.f == "create" for record in log.records) for log in logs.values() if log)


def test_a_seed_is_run_alike_twice() -> None:
    scenario = draw(2, TRIAL)
    assert run(scenario).trace_hash == run(scenario).trace_hash


#: About as many as a busy world commits.
_COMMITTED: Final = 600
#: As many chunks as a voter gets between two stalls of its leader's disk.
_CHUNKS_MAX: Final = 16


def drawn(seed: int) -> dict[str, str]:
    return KraftSimulation().draw_settings(random.Random(seed), 1_000)


def snapshot_bytes() -> int:
    machine = RegisterMachine()
    for offset in range(_COMMITTED):
        machine.apply(offset, 1, encode_command(Add(f"c0.{offset}-1", "s", offset)))
    snapshot_id = SnapshotId(Offset(_COMMITTED), Epoch(1))
    return sum(map(len, encode_snapshot(snapshot_id, 1, machine.freeze()())))


def test_a_lagging_voter_gets_a_snapshot_between_two_stalls_of_a_disk() -> None:
    size_bytes = snapshot_bytes()
    chunks = Counter(
        -(-size_bytes // int(settings["fetch_snapshot_max_bytes"]))
        for settings in map(drawn, range(300))
        if "fetch_snapshot_max_bytes" in settings
    )
    assert len(chunks) == 3
    assert sorted(chunks)[1] > 1
    assert max(chunks) <= _CHUNKS_MAX


def test_about_a_third_of_the_worlds_have_snapshots() -> None:
    with_snapshots = sum("snapshot_max_new_record_bytes" in drawn(seed) for seed in range(300))
    assert 70 <= with_snapshots <= 130
