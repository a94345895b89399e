"""Faults of a simulated world: when they strike, what they hit, what is said of them.

It is longer than 400 lines because every kind of fault and of moment has its test here.
"""

import re
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.fault import Awaited, Fault, FaultEvent, in_us
from splitbrain.contracts.names import NodeName
from splitbrain.harness.folder.simulation_outcome import SimulationOutcome
from splitbrain.harness.run.world.simulate import simulate
from splitbrain.history.timeline_records import TimelineFault
from splitbrain.nemesis.kinds import fault_kind
from splitbrain.nemesis.sorts import drawn_kinds
from tests.unit.harness.fake_cluster import FakeCluster, FakeSystem, scenario

AT = 300_000
WHOLE = ["invoked", "verified", "healing", "removed", "resumed"]


def fault(
    kind: str, target: str, moment: int | Awaited = AT, *, index: int = 0,
    duration_us: int = 200_000, draw: int = 5, **options: Any,
) -> Fault:  # fmt: skip
    if isinstance(moment, int):
        return Fault(index, kind, target, moment, duration_us, draw, options)
    return Fault(index, kind, target, 0, duration_us, draw, options, moment)


def story(outcome: SimulationOutcome, index: int = 0) -> list[FaultEvent]:
    return [event for event in outcome.faults if event.index == index]


def phases(outcome: SimulationOutcome, index: int = 0) -> list[str]:
    return [event.phase for event in story(outcome, index)]


def evidence(outcome: SimulationOutcome, phase: str, index: int = 0) -> str:
    return next(e.evidence or "" for e in story(outcome, index) if e.phase == phase)


@pytest.mark.parametrize("kind", drawn_kinds(beyond_promise=False))
def test_every_kind_strikes_and_heals_and_clients_are_served_again(kind: str) -> None:
    outcome = simulate(scenario(faults=(fault(kind, "leader"),)), FakeSystem())
    assert outcome.violation is None
    assert phases(outcome) == WHOLE
    assert evidence(outcome, "verified")
    assert evidence(outcome, "removed")
    assert [struck.index for struck in outcome.struck] == [0]
    times = [event.time for event in story(outcome)]
    lasts_us = 0 if fault_kind(kind).is_instant else 200_000
    assert times[:4] == [300_000_000] * 2 + [300_000_000 + lasts_us * 1_000] * 2


def test_a_partition_cuts_both_directions_and_says_how_many_links() -> None:
    outcome = simulate(scenario(faults=(fault("partition", "leader"),)), FakeSystem())
    assert evidence(outcome, "verified") == "4 links cut"
    assert evidence(outcome, "removed") == "4 links open; 0 messages had waited"


def test_a_one_way_cut_takes_the_direction_of_its_kind() -> None:
    for kind, links in (
        ("one-way-in", {("n2", "n1"), ("n3", "n1")}),
        ("one-way-out", {("n1", "n2"), ("n1", "n3")}),
    ):
        outcome = simulate(scenario(faults=(fault(kind, "n1"),)), FakeSystem())
        assert evidence(outcome, "verified") == "2 links cut"
        (struck,) = outcome.struck
        assert {(link.source, link.destination) for link in struck.links} == links


def test_a_partial_partition_leaves_a_third_node_that_reaches_both() -> None:
    (struck,) = simulate(scenario(faults=(fault("partial", "n1"),)), FakeSystem()).struck
    assert len(struck.nodes) == 2
    assert {(link.source, link.destination) for link in struck.links} == {
        struck.nodes, struck.nodes[::-1],
    }  # fmt: skip


def test_a_flapping_link_is_cut_as_often_as_asked_and_whole_in_the_end() -> None:
    system = FakeSystem()
    outcome = simulate(scenario(faults=(fault("flap", "n1", count=4),)), system)
    assert evidence(outcome, "removed") == "4 links open; 0 messages had waited"
    network: Any = system.cluster_made.world.network
    assert not network.is_cut("n1", "n2")


def test_a_link_that_two_faults_cut_is_open_after_the_last() -> None:
    seen: list[bool] = []

    def look(cluster: FakeCluster) -> None:
        network: Any = cluster.world.network
        for at_us in (350_000, 450_000, 550_000, 650_000):
            cluster.world.after(at_us, lambda: seen.append(network.is_cut("n1", "n2")))

    faults = (
        fault("partition", "n1", 300_000, duration_us=300_000),
        fault("partition", "n2", 400_000, duration_us=100_000, index=1),
    )
    outcome = simulate(scenario(faults=faults), FakeSystem(look))
    assert seen == [True, True, True, False]
    assert evidence(outcome, "removed", 1).startswith("2 links open")


def test_a_fault_at_a_happening_ends_the_step_in_which_it_was_called() -> None:
    moment = Awaited(on="ticks", node="n2", count=5)
    system = FakeSystem()
    outcome = simulate(scenario(faults=(fault("kill", "there", moment),)), system)
    assert phases(outcome) == WHOLE
    assert story(outcome)[0].nodes == ("n2",)
    acts = system.cluster_made.acts
    before = acts[: acts.index("n2 kill")]
    assert before.count("n2 went on after ticks") == 4
    assert acts[acts.index("n2 kill") + 1] != "n2 went on after ticks"


def test_two_faults_at_one_happening_both_strike_although_the_first_ends_the_step() -> None:
    moment = Awaited(on="ticks", node="n1", count=3)
    faults = (fault("kill", "there", moment), fault("partition", "there", moment, index=1))
    outcome = simulate(scenario(faults=faults), FakeSystem())
    assert phases(outcome, 0) == WHOLE
    assert phases(outcome, 1) == WHOLE


def test_a_node_that_winds_down_is_not_down_yet() -> None:
    def ignore(cluster: FakeCluster) -> None:
        cluster.heeds_signals = False

    faults = (
        fault("terminate", "n1", 300_000, duration_us=300_000),
        fault("pause", "n1", 400_000, duration_us=50_000, index=1),
    )
    assert phases(simulate(scenario(faults=faults), FakeSystem(ignore)), 1) == WHOLE
    heeding = simulate(scenario(faults=faults), FakeSystem())
    assert evidence(heeding, "not-applicable", 1) == "n1 down already"


def test_a_node_that_has_ended_by_itself_is_down() -> None:
    def end(cluster: FakeCluster) -> None:
        cluster.world.after(350_000, lambda: cluster.kill(NodeName("n1"), 0))

    outcome = simulate(scenario(faults=(fault("pause", "n1", 400_000),)), FakeSystem(end))
    assert evidence(outcome, "not-applicable") == "n1 down already"


def test_a_node_that_is_frozen_while_another_fault_thaws_it_stays_frozen() -> None:
    seen: list[bool] = []

    def look(cluster: FakeCluster) -> None:
        cluster.world.after(600_000, lambda: seen.append(cluster.is_paused(NodeName("n2"))))

    thawed = Awaited(on="thaws", node="n1")
    faults = (
        fault("pause", "random:2", 300_000, nodes=["n1", "n2"]),
        fault("pause", "n2", thawed, index=1),
    )
    outcome = simulate(scenario(faults=faults), FakeSystem(look))
    assert phases(outcome, 1) == WHOLE
    assert story(outcome, 1)[0].time == 500_000_000
    assert seen == [True]


def test_a_power_cut_at_a_happening_ends_the_step_too() -> None:
    moment = Awaited(on="ticks", count=4)
    system = FakeSystem()
    outcome = simulate(scenario(faults=(fault("power", "all", moment),)), system)
    assert phases(outcome) == WHOLE
    assert system.cluster_made.acts.count("n3 power-off") == 1


def test_a_fault_that_waits_strikes_later_by_its_delay() -> None:
    moment = Awaited(on="ticks", node="n1", count=2, delay_us=1_234)
    outcome = simulate(scenario(faults=(fault("pause", "there", moment),)), FakeSystem())
    assert story(outcome)[0].time % 10_000_000 == 1_234_000


def sequel(kind: str, count: int, **options: Any) -> Fault:
    return fault(kind, "there", Awaited(on="ticks", count=count), index=1, after=0, **options)


@pytest.mark.parametrize(
    ("place", "node", "at_ms"), [("same", "n1", 510), ("other", "n2", 310), (None, "n2", 310)]
)
def test_a_sequel_counts_what_happens_where_it_is_to_after_its_first_part(
    place: str | None, node: str, at_ms: int
) -> None:
    options: dict[str, Any] = {} if place is None else {"after_place": place}
    count = 2 if place == "same" else 3
    faults = (fault("kill", "n1"), sequel("pause", count, **options))
    outcome = simulate(scenario(faults=faults), FakeSystem())
    struck = story(outcome, 1)[0]
    assert struck.nodes == (node,)
    # Ticks come every 10 ms, at n1 from its start on; n2 and n3 follow one another in each.
    assert struck.time // 1_000_000 == at_ms


def test_a_sequel_whose_first_part_never_strikes_does_not_either() -> None:
    first = fault("kill", "there", Awaited(on="ticks", node="n1", count=100_000))
    outcome = simulate(scenario(faults=(first, sequel("pause", 1))), FakeSystem())
    assert phases(outcome, 1) == ["not-applicable"]
    assert "'ticks' once did not happen" in evidence(outcome, "not-applicable", 1)


def test_a_sequel_without_its_first_part_waits_like_any_other_fault() -> None:
    alone = sequel("pause", 4, after_place="same")
    outcome = simulate(scenario(faults=(alone,)), FakeSystem())
    assert phases(outcome, 1) == WHOLE


def test_a_fault_waits_only_as_long_as_it_says() -> None:
    moment = Awaited(on="ticks", node="n1", count=20, timeout_us=100_000)
    outcome = simulate(scenario(faults=(fault("kill", "there", moment),)), FakeSystem())
    (told,) = story(outcome)
    assert (told.phase, told.time) == ("not-applicable", 100_000_000)
    assert (told.evidence or "").endswith("did not happen within 0.1 s")


@pytest.mark.parametrize(("delay_us", "healed_ms"), [(0, 310), (15_000, 325)])
def test_a_fault_heals_soon_after_what_it_names_has_happened_elsewhere(
    delay_us: int, healed_ms: int
) -> None:
    # The third tick at nodes that are not hit: those at 300 ms come before or with the fault.
    options = {"until": "ticks", "until_count": 3, "until_delay_us": delay_us}
    chosen = fault("partition", "n1", 295_000, **options)
    outcome = simulate(scenario(faults=(chosen,)), FakeSystem())
    assert phases(outcome) == WHOLE
    assert story(outcome)[3].time // 1_000_000 == healed_ms


def test_an_early_heal_leaves_out_the_steps_that_were_still_to_come() -> None:
    system = FakeSystem()
    chosen = fault("crash-loop", "n1", 295_000, count=4, until="ticks", until_count=3)
    outcome = simulate(scenario(faults=(chosen,)), system)
    assert phases(outcome) == WHOLE
    assert system.cluster_made.acts.count("n1 kill") == 1
    whole = FakeSystem()
    simulate(scenario(faults=(fault("crash-loop", "n1", count=4),)), whole)
    assert whole.cluster_made.acts.count("n1 kill") == 4


def test_what_never_happens_is_not_applicable() -> None:
    moment = Awaited(on="ticks", node="n1", count=100_000)
    outcome = simulate(scenario(faults=(fault("kill", "there", moment),)), FakeSystem())
    assert phases(outcome) == ["not-applicable"]
    assert "'ticks' at n1 100000 times did not happen" in evidence(outcome, "not-applicable")


def test_a_target_that_does_not_exist_is_waited_for_and_then_given_up() -> None:
    faults = (
        fault("power", "all", 100_000, duration_us=6_000_000),
        fault("pause", "leader", 200_000, index=1),
    )
    outcome = simulate(scenario(faults=faults, load_us=7_000_000), FakeSystem())
    assert phases(outcome, 1) == ["not-applicable"]
    assert evidence(outcome, "not-applicable", 1) == "no leader for 5 s"
    short = simulate(scenario(faults=faults), FakeSystem())
    assert evidence(short, "not-applicable", 1) == "the load was over"


def test_overlapping_kills_of_different_nodes_add_up_on_the_shared_one() -> None:
    system = FakeSystem()
    faults = (
        fault("kill", "n1", 100_000, duration_us=400_000),
        fault("power", "all", 200_000, duration_us=100_000, index=1),
    )
    outcome = simulate(scenario(faults=faults), system)
    removed = [event for event in story(outcome, 1) if event.phase == "removed"]
    assert removed[0].evidence == "n1 exited, n2 runs, n3 runs"


@pytest.mark.parametrize("kind", ["wipe", "rot-log"])
def test_a_voter_forgets_only_what_the_promise_can_bear(kind: str) -> None:
    def hold(cluster: FakeCluster) -> None:
        cluster.forgettable[NodeName("n2")] = False

    chosen = scenario(faults=(fault(kind, "n2"),))
    outcome = simulate(chosen, FakeSystem(hold))
    assert phases(outcome) == ["not-applicable"]
    assert evidence(outcome, "not-applicable").startswith("beyond the promise: n2")
    beyond = simulate(msgspec.structs.replace(chosen, beyond_promise=True), FakeSystem(hold))
    assert phases(beyond)[:2] == ["invoked", "verified"]


@pytest.mark.parametrize("rots", [False, True])
def test_a_node_whose_disk_had_nothing_to_rot_has_forgotten_nothing(*, rots: bool) -> None:
    def prepare(cluster: FakeCluster) -> None:
        cluster.disk(NodeName("n1")).rots = rots

    faults = (
        fault("rot-log", "n1", 100_000, duration_us=50_000),
        fault("rot-log", "n2", 300_000, index=1),
    )
    outcome = simulate(scenario(faults=faults), FakeSystem(prepare))
    assert phases(outcome, 1)[0] == ("not-applicable" if rots else "invoked")


def test_a_disk_is_put_back_only_beyond_the_promise() -> None:
    chosen = scenario(faults=(fault("roll-back", "n1"),))
    assert phases(simulate(chosen, FakeSystem())) == ["not-applicable"]
    system = FakeSystem()
    beyond = simulate(msgspec.structs.replace(chosen, beyond_promise=True), system)
    assert phases(beyond) == WHOLE
    acts = system.cluster_made.acts
    wanted = ["n1 remember", "n1 kill", "n1 roll-back", "n1 start"]
    places = [acts.index(act) for act in wanted[:3]]
    assert places == sorted(places)
    assert "n1 start" in acts[places[2] :]


def test_a_rotten_node_is_replaced_or_left_out_when_everything_heals() -> None:
    replaced = FakeSystem()
    simulate(scenario(faults=(fault("rot-log", "n2"),)), replaced)
    assert "n2 wipe" in replaced.cluster_made.acts
    assert replaced.cluster_made.healed_nodes == ("n1", "n2", "n3")

    def hold_later(cluster: FakeCluster) -> None:
        def hold() -> None:
            cluster.forgettable[NodeName("n2")] = False

        cluster.world.after(600_000, hold)

    left_out = FakeSystem(hold_later)
    simulate(scenario(faults=(fault("rot-log", "n2"),)), left_out)
    assert "n2 wipe" not in left_out.cluster_made.acts
    assert left_out.cluster_made.healed_nodes == ("n1", "n3")


def test_of_two_slow_disks_the_last_is_in_force_and_then_the_other_again() -> None:
    system = FakeSystem()
    faults = (
        fault("slow-disk", "n1", 100_000, duration_us=300_000, factor=8),
        fault("slow-disk", "n1", 200_000, duration_us=100_000, index=1, factor=3),
    )
    simulate(scenario(faults=faults), system)
    slow = [act for act in system.cluster_made.acts if act.startswith("n1 slow")]
    assert slow == ["n1 slow 8", "n1 slow 3", "n1 slow 8", "n1 slow 1"]


def test_faults_still_in_force_are_healed_at_the_end_of_the_load() -> None:
    outcome = simulate(
        scenario(faults=(fault("partition", "leader", duration_us=9_000_000),)), FakeSystem()
    )
    assert phases(outcome) == WHOLE
    assert story(outcome)[3].time == 1_000_000_000


def test_the_band_of_a_fault_says_what_it_was_aimed_at_before_it_has_done_anything() -> None:
    class StruckError(Exception):
        pass

    def fail(cluster: FakeCluster) -> None:
        def pause(node: NodeName) -> None:
            raise StruckError(node)

        cluster.pause = pause  # type: ignore[method-assign]

    outcome = simulate(
        scenario(faults=(fault("pause", "leader"),)), FakeSystem(fail), is_recording=True
    )
    (band,) = [record for record in outcome.story if isinstance(record, TimelineFault)]
    assert band.detail == "leader"


def test_the_story_shows_each_fault_as_a_band() -> None:
    outcome = simulate(
        scenario(faults=(fault("partition", "n1"),)), FakeSystem(), is_recording=True
    )
    (band,) = [record for record in outcome.story if isinstance(record, TimelineFault)]
    assert (band.time, band.until, band.nodes) == (300_000, 500_000, ("n1",))


def test_a_node_that_is_asked_to_end_is_started_again_and_killed_first_if_it_has_not() -> None:
    heeding = FakeSystem()
    outcome = simulate(scenario(faults=(fault("terminate", "n1"),)), heeding)
    assert phases(outcome) == WHOLE
    assert evidence(outcome, "verified") == "n1 runs; n1 asked to end"
    assert evidence(outcome, "removed") == "n1 runs; n1 had ended"

    def ignore(cluster: FakeCluster) -> None:
        cluster.heeds_signals = False

    deaf = FakeSystem(ignore)
    outcome = simulate(scenario(faults=(fault("terminate", "n1"),)), deaf)
    assert evidence(outcome, "removed") == "n1 runs; n1 had not ended yet and was killed"
    for system in (heeding, deaf):
        acts = [act for act in system.cluster_made.acts if act.split()[1] in ("terminate", "kill")]
        assert acts[:2] == ["n1 terminate", "n1 kill"]


def test_a_node_that_ends_late_is_held_down_until_the_fault_heals() -> None:
    faults = (
        fault("terminate", "n1", 100_000, duration_us=400_000),
        fault("wipe", "n1", 200_000, duration_us=50_000, index=1),
    )
    system = FakeSystem()
    simulate(scenario(faults=faults), system)
    acts = system.cluster_made.acts
    between = acts[acts.index("n1 kill") : acts.index("n1 wipe")]
    assert "n1 start" not in between
    assert acts.count("n1 start") == 2


def test_a_slow_link_is_slow_in_each_direction_by_itself() -> None:
    chosen = fault("slow-link", "n1", delay_ms=900, back_delay_ms=0)
    outcome = simulate(scenario(faults=(chosen,)), FakeSystem())
    (struck,) = outcome.struck
    there = f"{struck.nodes[0]} to {struck.nodes[1]}"
    assert evidence(outcome, "verified") == f"{there} slower by 900.000 ms"
    assert evidence(outcome, "removed") == f"{there} as fast as before"


def test_a_slow_link_takes_up_to_a_second_and_often_differs_by_direction() -> None:
    delays: list[list[int]] = []
    for draw in range(60):
        outcome = simulate(scenario(faults=(fault("slow-link", "n1", draw=draw),)), FakeSystem())
        words = evidence(outcome, "verified")
        told_ms = re.findall(r"slower by ([\d,.]+) ms", words)
        delays.append([in_us(float(one.replace(",", ""))) for one in told_ms])
    drawn = [delay for pair in delays for delay in pair]
    assert 8_000 <= min(drawn) < 20_000
    assert 500_000 < max(drawn) <= 1_000_000
    assert {len(pair) for pair in delays} == {1, 2}


@pytest.mark.parametrize("kind", ["write-fails", "rename-fails"])
def test_calls_of_a_disk_fail_once_or_until_it_is_healed(kind: str) -> None:
    action = kind.removesuffix("-fails")
    for lasting, count in ((0, 1), (1, None)):
        system = FakeSystem()
        simulate(scenario(faults=(fault(kind, "n1", lasting=lasting, restart=0),)), system)
        assert "n1 kill" not in system.cluster_made.acts
        acts = system.cluster_made.acts
        done = [act for act in acts if "fail-" in act or "mend" in act]
        assert done == [f"n1 fail-{action} {count}", "n1 mend"]


def test_a_node_is_restarted_into_the_calls_that_fail() -> None:
    system = FakeSystem()
    simulate(scenario(faults=(fault("rename-fails", "n1", restart=1, lasting=1),)), system)
    acts = [act for act in system.cluster_made.acts if act.startswith("n1") and "went" not in act]
    assert acts == [
        "n1 start", "n1 fail-rename None", "n1 kill", "n1 start", "n1 mend",
    ]  # fmt: skip


def test_the_mark_of_a_disk_that_has_rotted_before_does_not_rot_within_the_promise() -> None:
    faults = (
        fault("rot-log", "n1", 100_000),
        fault("rot-mark", "n1", 400_000, index=1),
    )
    within = scenario(faults=faults)
    outcome = simulate(within, FakeSystem())
    assert phases(outcome, 1) == ["not-applicable"]
    assert "it would hide what has rotted" in evidence(outcome, "not-applicable", 1)
    alone = simulate(msgspec.structs.replace(within, faults=faults[1:]), FakeSystem())
    assert phases(alone, 1)[:2] == ["invoked", "verified"]
    beyond = simulate(msgspec.structs.replace(within, beyond_promise=True), FakeSystem())
    assert phases(beyond, 1)[:2] == ["invoked", "verified"]


def test_the_checkpoint_rots_only_while_its_node_is_down() -> None:
    for draw in range(8):
        system = FakeSystem()
        simulate(scenario(faults=(fault("rot-checkpoint", "n1", draw=draw),)), system)
        acts = system.cluster_made.acts
        assert acts.index("n1 kill") < acts.index("n1 rot checkpoint")


def test_a_reset_lasts_as_long_as_its_fault() -> None:
    system = FakeSystem()
    outcome = simulate(scenario(faults=(fault("reset", "n1"),)), system)
    assert phases(outcome) == WHOLE
    times = [event.time for event in story(outcome)]
    assert times[3] - times[1] == 200_000_000
    assert evidence(outcome, "verified") == "4 links answer with resets"
    assert evidence(outcome, "removed").startswith("4 links answer no more; 0 messages")


def test_a_disk_that_fails_refuses_every_write_and_is_repaired_while_its_node_is_down() -> None:
    system = FakeSystem()
    outcome = simulate(scenario(faults=(fault("disk-error", "n1"),)), system)
    assert phases(outcome) == WHOLE
    acts = [act for act in system.cluster_made.acts if act.startswith("n1") and "went" not in act]
    failing = [f"n1 fail-{call} None" for call in ("write", "sync", "rename")]
    assert acts == ["n1 start", *failing, "n1 kill", "n1 mend", "n1 start"]


def test_a_changed_file_is_met_by_its_node_and_put_back_where_that_has_refused_it() -> None:
    def refuse(cluster: FakeCluster) -> None:
        cluster.refuses = NodeName("n1")

    for prepare, ends in ((None, []), (refuse, ["put-back", "start"])):
        system = FakeSystem(prepare)
        outcome = simulate(scenario(faults=(fault("flip", "n1"),)), system)
        assert phases(outcome) == WHOLE
        acts = [act for act in system.cluster_made.acts if act.startswith("n1")]
        done = [act.removeprefix("n1 ") for act in acts if "went" not in act]
        assert done[:5] == ["start", "kill", "remember", "changed", "start"]
        assert done[5:][: len(ends)] == ends
        assert "log/0.log byte" in evidence(outcome, "verified")
        told = evidence(outcome, "removed")
        assert ("put back" in told) == bool(ends)


def test_a_file_that_changed_since_is_put_back_in_the_middle_of_its_fault() -> None:
    def write_later(cluster: FakeCluster) -> None:
        files = cluster.disk(NodeName("n1")).files
        cluster.world.after(350_000, lambda: files.now.update({"log/0.log": b"RECORDS"}))

    system = FakeSystem(write_later)
    made = scenario(faults=(fault("restore", "n1"),), beyond_promise=True)
    assert phases(simulate(made, system)) == WHOLE
    acts = [act for act in system.cluster_made.acts if act.startswith("n1") and "went" not in act]
    assert acts == [
        "n1 start", "n1 remember", "n1 kill", "n1 put-back", "n1 start",
    ]  # fmt: skip
    assert system.cluster_made.disk(NodeName("n1")).files.now["log/0.log"] == b"records"
