"""Worlds whose nodes are Kafka's controllers: they register, write snapshots, fail over."""

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.scenario import Scenario
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.simulation.kraft.system import KraftSimulation
from splitbrain.simulation.world.world import SimulatedWorld
from tests.unit.simulation.kraft.small_controllers import Controllers, beat


@pytest.mark.parametrize("through_codec", [False, True])
def test_controllers_register_with_whoever_leads_and_again_in_each_life(
    *, through_codec: bool
) -> None:
    controllers = Controllers(through_codec=through_codec)
    before = controllers.image.controllers
    assert sorted(before) == [1, 2, 3]
    leader = controllers.cluster.leader().leader
    assert leader is not None
    others = [node for node in controllers.cluster.nodes if node != leader]
    number = int(others[0][1:])
    controllers.cluster.power_off([others[0]], 0)
    controllers.cluster.start(others[0])
    controllers.until(
        lambda: (
            controllers.image.controllers[number].incarnation_id != before[number].incarnation_id
        )
    )
    rest = {1, 2, 3} - {number}
    assert all(controllers.image.controllers[other] == before[other] for other in rest)


def test_messages_and_frames_make_the_same_world() -> None:
    plain, framed = Controllers(), Controllers(through_codec=True)
    assert plain.world.now == framed.world.now
    assert plain.ghost.committed == framed.ghost.committed


def test_a_new_leader_goes_on_with_what_is_committed() -> None:
    controllers = Controllers()
    leader = controllers.cluster.leader().leader
    assert leader is not None
    known = controllers.image
    controllers.cluster.power_off([leader], 0)
    controllers.until(lambda: controllers.cluster.leader().leader not in (None, leader))
    end = len(controllers.ghost.committed)
    controllers.until(lambda: len(controllers.ghost.committed) > end + 3)
    controllers.cluster.start(leader)
    controllers.until(lambda: controllers.cluster.unlike(controllers.cluster.nodes) is None)
    assert controllers.image.features == known.features
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
