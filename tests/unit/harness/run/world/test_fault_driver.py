"""Faults of a simulated world: when they strike, what they hit, what is said of them.

It is longer than 400 lines because every kind of fault and of moment has its test here.
"""

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.fault import Awaited, Fault, FaultEvent, in_us
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.run.world.simulate import simulate
from splitbrain.history.timeline_records import TimelineFault
from splitbrain.nemesis.kinds import fault_kind
from splitbrain.nemesis.sorts import drawn_kinds
from tests.unit.harness.fake_cluster import FakeCluster, FakeSystem, scenario

AT = 300_000
WHOLE = ["invoked", "verified", "healing", "removed", "resumed"]
N1, N2 = NodeName("n1"), NodeName("n2")


def fault(
    kind: str, target: str, moment: int | Awaited = AT, *, index: int = 0,
    duration_us: int = 200_000, draw: int = 5, **options: Any,
) -> Fault:  # fmt: skip
    if isinstance(moment, int):
        return Fault(index, kind, target, moment, duration_us, draw, options)
    return Fault(index, kind, target, 0, duration_us, draw, options, moment)


def sequel(kind: str, count: int, **options: Any) -> Fault:
    return fault(kind, "there", Awaited(on="ticks", count=count), index=1, after=0, **options)


class Ran:
    """A world with these faults, after its end."""

    def __init__(
        self,
        *faults: Fault,
        prepare: Callable[[FakeCluster], object] | None = None,
        is_recording: bool = False,
        **world: Any,
    ) -> None:
        system = FakeSystem(prepare)  # type: ignore[arg-type]
        made = scenario(faults=faults, **world)
        self.outcome = simulate(made, system, is_recording=is_recording)
        self.cluster = system.cluster_made
        self.acts = self.cluster.acts

    def story(self, index: int = 0) -> list[FaultEvent]:
        return [event for event in self.outcome.faults if event.index == index]

    def phases(self, index: int = 0) -> list[str]:
        return [event.phase for event in self.story(index)]

    def evidence(self, phase: str, index: int = 0) -> str:
        return next(e.evidence or "" for e in self.story(index) if e.phase == phase)

    def links(self) -> set[tuple[str, str]]:
        (struck,) = self.outcome.struck
        return {(link.source, link.destination) for link in struck.links}

    def acts_at(self, node: str) -> list[str]:
        """Acts on a node, without its own ticks."""
        own = [act for act in self.acts if act.startswith(node) and "went" not in act]
        return [act.removeprefix(f"{node} ") for act in own]

    def band(self) -> TimelineFault:
        (band,) = [record for record in self.outcome.story if isinstance(record, TimelineFault)]
        return band


def ignore_signals(cluster: FakeCluster) -> None:
    cluster.heeds_signals = False


def hold_n2(cluster: FakeCluster) -> None:
    cluster.forgettable[N2] = False


@pytest.mark.parametrize("kind", drawn_kinds(beyond_promise=False))
def test_every_kind_strikes_and_heals_and_clients_are_served_again(kind: str) -> None:
    ran = Ran(fault(kind, "leader"))
    assert ran.outcome.violation is None
    assert ran.phases() == WHOLE
    assert ran.evidence("verified")
    assert ran.evidence("removed")
    assert [struck.index for struck in ran.outcome.struck] == [0]
    times = [event.time for event in ran.story()]
    lasts_us = 0 if fault_kind(kind).is_instant else 200_000
    assert times[:4] == [300_000_000] * 2 + [300_000_000 + lasts_us * 1_000] * 2


def test_a_partition_cuts_both_directions_and_says_how_many_links() -> None:
    ran = Ran(fault("partition", "leader"))
    assert ran.evidence("verified") == "4 links cut"
    assert ran.evidence("removed") == "4 links open; 0 messages had waited"


@pytest.mark.parametrize(
    ("kind", "links"),
    [("one-way-in", {("n2", "n1"), ("n3", "n1")}), ("one-way-out", {("n1", "n2"), ("n1", "n3")})],
)
def test_a_one_way_cut_takes_the_direction_of_its_kind(
    kind: str, links: set[tuple[str, str]]
) -> None:
    ran = Ran(fault(kind, "n1"))
    assert ran.evidence("verified") == "2 links cut"
    assert ran.links() == links


def test_a_partial_partition_leaves_a_third_node_that_reaches_both() -> None:
    ran = Ran(fault("partial", "n1"))
    (struck,) = ran.outcome.struck
    one, other = struck.nodes
    assert ran.links() == {(one, other), (other, one)}


def test_a_flapping_link_is_cut_as_often_as_asked_and_whole_in_the_end() -> None:
    ran = Ran(fault("flap", "n1", count=4))
    assert ran.evidence("removed") == "4 links open; 0 messages had waited"
    network: Any = ran.cluster.world.network
    assert not network.is_cut("n1", "n2")


def test_a_link_that_two_faults_cut_is_open_after_the_last() -> None:
    seen: list[bool] = []

    def look(cluster: FakeCluster) -> None:
        network: Any = cluster.world.network
        for at_us in (350_000, 450_000, 550_000, 650_000):
            cluster.world.after(at_us, lambda: seen.append(network.is_cut("n1", "n2")))

    ran = Ran(
        fault("partition", "n1", 300_000, duration_us=300_000),
        fault("partition", "n2", 400_000, duration_us=100_000, index=1),
        prepare=look,
    )
    assert seen == [True, True, True, False]
    assert ran.evidence("removed", 1).startswith("2 links open")


def test_a_fault_at_a_happening_ends_the_step_in_which_it_was_called() -> None:
    ran = Ran(fault("kill", "there", Awaited(on="ticks", node="n2", count=5)))
    assert ran.phases() == WHOLE
    assert ran.story()[0].nodes == ("n2",)
    killed = ran.acts.index("n2 kill")
    assert ran.acts[:killed].count("n2 went on after ticks") == 4
    assert ran.acts[killed + 1] != "n2 went on after ticks"


def test_two_faults_at_one_happening_both_strike_although_the_first_ends_the_step() -> None:
    moment = Awaited(on="ticks", node="n1", count=3)
    ran = Ran(fault("kill", "there", moment), fault("partition", "there", moment, index=1))
    assert ran.phases(0) == ran.phases(1) == WHOLE


def test_a_node_that_winds_down_is_not_down_yet() -> None:
    faults = (
        fault("terminate", "n1", 300_000, duration_us=300_000),
        fault("pause", "n1", 400_000, duration_us=50_000, index=1),
    )
    assert Ran(*faults, prepare=ignore_signals).phases(1) == WHOLE
    assert Ran(*faults).evidence("not-applicable", 1) == "n1 down already"


def test_a_node_that_has_ended_by_itself_is_down() -> None:
    def end(cluster: FakeCluster) -> None:
        cluster.world.after(350_000, lambda: cluster.kill(N1, 0))

    ran = Ran(fault("pause", "n1", 400_000), prepare=end)
    assert ran.evidence("not-applicable") == "n1 down already"


def test_a_node_that_is_frozen_while_another_fault_thaws_it_stays_frozen() -> None:
    seen: list[bool] = []

    def look(cluster: FakeCluster) -> None:
        cluster.world.after(600_000, lambda: seen.append(cluster.is_paused(N2)))

    ran = Ran(
        fault("pause", "random:2", 300_000, nodes=["n1", "n2"]),
        fault("pause", "n2", Awaited(on="thaws", node="n1"), index=1),
        prepare=look,
    )
    assert ran.phases(1) == WHOLE
    assert ran.story(1)[0].time == 500_000_000
    assert seen == [True]


def test_a_power_cut_at_a_happening_ends_the_step_too() -> None:
    ran = Ran(fault("power", "all", Awaited(on="ticks", count=4)))
    assert ran.phases() == WHOLE
    assert ran.acts.count("n3 power-off") == 1


def test_a_fault_that_waits_strikes_later_by_its_delay() -> None:
    ran = Ran(fault("pause", "there", Awaited(on="ticks", node="n1", count=2, delay_us=1_234)))
    assert ran.story()[0].time % 10_000_000 == 1_234_000


@pytest.mark.parametrize(
    ("place", "node", "at_ms"), [("same", "n1", 510), ("other", "n2", 310), (None, "n2", 310)]
)
def test_a_sequel_counts_what_happens_where_it_is_to_after_its_first_part(
    place: str | None, node: str, at_ms: int
) -> None:
    options: dict[str, Any] = {} if place is None else {"after_place": place}
    count = 2 if place == "same" else 3
    struck = Ran(fault("kill", "n1"), sequel("pause", count, **options)).story(1)[0]
    assert struck.nodes == (node,)
    # Ticks come every 10 ms, at n1 from its start on; n2 and n3 follow one another in each.
    assert struck.time // 1_000_000 == at_ms


def test_a_sequel_whose_first_part_never_strikes_does_not_either() -> None:
    first = fault("kill", "there", Awaited(on="ticks", node="n1", count=100_000))
    ran = Ran(first, sequel("pause", 1))
    assert ran.phases(1) == ["not-applicable"]
    assert "'ticks' once did not happen" in ran.evidence("not-applicable", 1)


def test_a_sequel_without_its_first_part_waits_like_any_other_fault() -> None:
    assert Ran(sequel("pause", 4, after_place="same")).phases(1) == WHOLE


def test_a_fault_waits_only_as_long_as_it_says() -> None:
    moment = Awaited(on="ticks", node="n1", count=20, timeout_us=100_000)
    (event,) = Ran(fault("kill", "there", moment)).story()
    assert (event.phase, event.time) == ("not-applicable", 100_000_000)
    assert (event.evidence or "").endswith("did not happen within 0.1 s")


@pytest.mark.parametrize(("delay_us", "healed_ms"), [(0, 310), (15_000, 325)])
def test_a_fault_heals_soon_after_what_it_names_has_happened_elsewhere(
    delay_us: int, healed_ms: int
) -> None:
    # The third tick at nodes that are not hit: those at 300 ms come before or with the fault.
    options = {"until": "ticks", "until_count": 3, "until_delay_us": delay_us}
    ran = Ran(fault("partition", "n1", 295_000, **options))
    assert ran.phases() == WHOLE
    assert ran.story()[3].time // 1_000_000 == healed_ms


def test_an_early_heal_leaves_out_the_steps_that_were_still_to_come() -> None:
    ran = Ran(fault("crash-loop", "n1", 295_000, count=4, until="ticks", until_count=3))
    assert ran.phases() == WHOLE
    assert ran.acts.count("n1 kill") == 1
    assert Ran(fault("crash-loop", "n1", count=4)).acts.count("n1 kill") == 4


def test_what_never_happens_is_not_applicable() -> None:
    ran = Ran(fault("kill", "there", Awaited(on="ticks", node="n1", count=100_000)))
    assert ran.phases() == ["not-applicable"]
    assert "'ticks' at n1 100000 times did not happen" in ran.evidence("not-applicable")


def test_a_target_that_does_not_exist_is_waited_for_and_then_given_up() -> None:
    faults = (
        fault("power", "all", 100_000, duration_us=6_000_000),
        fault("pause", "leader", 200_000, index=1),
    )
    ran = Ran(*faults, load_us=7_000_000)
    assert ran.phases(1) == ["not-applicable"]
    assert ran.evidence("not-applicable", 1) == "no leader for 5 s"
    assert Ran(*faults).evidence("not-applicable", 1) == "the load was over"


def test_overlapping_kills_of_different_nodes_add_up_on_the_shared_one() -> None:
    ran = Ran(
        fault("kill", "n1", 100_000, duration_us=400_000),
        fault("power", "all", 200_000, duration_us=100_000, index=1),
    )
    assert ran.evidence("removed", 1) == "n1 exited, n2 runs, n3 runs"


@pytest.mark.parametrize("kind", ["wipe", "rot-log"])
def test_a_voter_forgets_only_what_the_promise_can_bear(kind: str) -> None:
    ran = Ran(fault(kind, "n2"), prepare=hold_n2)
    assert ran.phases() == ["not-applicable"]
    why = "beyond the promise: a majority without n2 could lack records or votes"
    assert ran.evidence("not-applicable") == why
    beyond = Ran(fault(kind, "n2"), prepare=hold_n2, beyond_promise=True)
    assert beyond.phases()[:2] == ["invoked", "verified"]


@pytest.mark.parametrize("rots", [False, True])
def test_a_node_whose_disk_had_nothing_to_rot_has_forgotten_nothing(*, rots: bool) -> None:
    def prepare(cluster: FakeCluster) -> None:
        cluster.disk(N1).rots = rots

    ran = Ran(
        fault("rot-log", "n1", 100_000, duration_us=50_000),
        fault("rot-log", "n2", 300_000, index=1),
        prepare=prepare,
    )
    assert ran.phases(1)[0] == ("not-applicable" if rots else "invoked")


def test_a_disk_is_put_back_only_beyond_the_promise() -> None:
    assert Ran(fault("roll-back", "n1")).phases() == ["not-applicable"]
    beyond = Ran(fault("roll-back", "n1"), beyond_promise=True)
    assert beyond.phases() == WHOLE
    acts = beyond.acts_at("n1")
    places = [acts.index(act) for act in ("remember", "kill", "roll-back")]
    assert places == sorted(places)
    assert "start" in acts[places[2] :]


def test_a_rotten_node_is_replaced_or_left_out_when_everything_heals() -> None:
    replaced = Ran(fault("rot-log", "n2"))
    assert "n2 wipe" in replaced.acts
    assert replaced.cluster.healed_nodes == ("n1", "n2", "n3")
    left_out = Ran(
        fault("rot-log", "n2"),
        prepare=lambda cluster: cluster.world.after(600_000, lambda: hold_n2(cluster)),
    )
    assert "n2 wipe" not in left_out.acts
    assert left_out.cluster.healed_nodes == ("n1", "n3")


def test_of_two_slow_disks_the_last_is_in_force_and_then_the_other_again() -> None:
    ran = Ran(
        fault("slow-disk", "n1", 100_000, duration_us=300_000, factor=8),
        fault("slow-disk", "n1", 200_000, duration_us=100_000, index=1, factor=3),
    )
    slow = [act for act in ran.acts_at("n1") if act.startswith("slow")]
    assert slow == ["slow 8", "slow 3", "slow 8", "slow 1"]


def test_faults_still_in_force_are_healed_at_the_end_of_the_load() -> None:
    ran = Ran(fault("partition", "leader", duration_us=9_000_000))
    assert ran.phases() == WHOLE
    assert ran.story()[3].time == 1_000_000_000


def test_the_band_of_a_fault_says_what_it_was_aimed_at_before_it_has_done_anything() -> None:
    class StruckError(Exception):
        pass

    def fail(cluster: FakeCluster) -> None:
        def pause(node: NodeName) -> None:
            raise StruckError(node)

        cluster.pause = pause  # type: ignore[method-assign]

    ran = Ran(fault("pause", "leader"), prepare=fail, is_recording=True)
    assert ran.band().detail == "leader"


def test_the_story_shows_each_fault_as_a_band() -> None:
    band = Ran(fault("partition", "n1"), is_recording=True).band()
    assert (band.time, band.until, band.nodes) == (300_000, 500_000, ("n1",))


@pytest.mark.parametrize(
    ("prepare", "removed"),
    [
        (None, "n1 runs; n1 had ended"),
        (ignore_signals, "n1 runs; n1 had not ended yet and was killed"),
    ],
)
def test_a_node_that_is_asked_to_end_is_started_again_and_killed_first_if_it_has_not(
    prepare: Callable[[FakeCluster], None] | None, removed: str
) -> None:
    ran = Ran(fault("terminate", "n1"), prepare=prepare)
    assert ran.phases() == WHOLE
    assert ran.evidence("verified") == "n1 runs; n1 asked to end"
    assert ran.evidence("removed") == removed
    ends = [act for act in ran.acts if act.split()[1] in ("terminate", "kill")]
    assert ends[:2] == ["n1 terminate", "n1 kill"]


def test_a_node_that_ends_late_is_held_down_until_the_fault_heals() -> None:
    ran = Ran(
        fault("terminate", "n1", 100_000, duration_us=400_000),
        fault("wipe", "n1", 200_000, duration_us=50_000, index=1),
    )
    acts = ran.acts_at("n1")
    assert "start" not in acts[acts.index("kill") : acts.index("wipe")]
    assert acts.count("start") == 2


def test_a_slow_link_is_slow_in_each_direction_by_itself() -> None:
    ran = Ran(fault("slow-link", "n1", delay_ms=900, back_delay_ms=0))
    (struck,) = ran.outcome.struck
    there = f"{struck.nodes[0]} to {struck.nodes[1]}"
    assert ran.evidence("verified") == f"{there} slower by 900.000 ms"
    assert ran.evidence("removed") == f"{there} as fast as before"


def test_a_slow_link_takes_up_to_a_second_and_often_differs_by_direction() -> None:
    delays: list[list[int]] = []
    for draw in range(60):
        sentence = Ran(fault("slow-link", "n1", draw=draw)).evidence("verified")
        slower_ms = re.findall(r"slower by ([\d,.]+) ms", sentence)
        delays.append([in_us(float(figure.replace(",", ""))) for figure in slower_ms])
    drawn = [delay for pair in delays for delay in pair]
    assert 8_000 <= min(drawn) < 20_000
    assert 500_000 < max(drawn) <= 1_000_000
    assert {len(pair) for pair in delays} == {1, 2}


@pytest.mark.parametrize(("lasting", "count"), [(0, 1), (1, None)])
@pytest.mark.parametrize("action", ["write", "rename"])
def test_calls_of_a_disk_fail_once_or_until_it_is_healed(
    action: str, lasting: int, count: int | None
) -> None:
    ran = Ran(fault(f"{action}-fails", "n1", lasting=lasting, restart=0))
    assert "n1 kill" not in ran.acts
    done = [act for act in ran.acts if "fail-" in act or "mend" in act]
    assert done == [f"n1 fail-{action} {count}", "n1 mend"]


def test_a_node_is_restarted_into_the_calls_that_fail() -> None:
    ran = Ran(fault("rename-fails", "n1", restart=1, lasting=1))
    assert ran.acts_at("n1") == ["start", "fail-rename None", "kill", "start", "mend"]


def test_the_mark_of_a_disk_that_has_rotted_before_does_not_rot_within_the_promise() -> None:
    faults = (fault("rot-log", "n1", 100_000), fault("rot-mark", "n1", 400_000, index=1))
    within = Ran(*faults)
    assert within.phases(1) == ["not-applicable"]
    assert "it would hide what has rotted" in within.evidence("not-applicable", 1)
    for other in (Ran(faults[1]), Ran(*faults, beyond_promise=True)):
        assert other.phases(1)[:2] == ["invoked", "verified"]


def test_the_checkpoint_rots_only_while_its_node_is_down() -> None:
    for draw in range(8):
        acts = Ran(fault("rot-checkpoint", "n1", draw=draw)).acts
        assert acts.index("n1 kill") < acts.index("n1 rot checkpoint")


def test_a_reset_lasts_as_long_as_its_fault() -> None:
    ran = Ran(fault("reset", "n1"))
    assert ran.phases() == WHOLE
    times = [event.time for event in ran.story()]
    assert times[3] - times[1] == 200_000_000
    assert ran.evidence("verified") == "4 links answer with resets"
    assert ran.evidence("removed").startswith("4 links answer no more; 0 messages")


def test_a_disk_that_fails_refuses_every_write_and_is_repaired_while_its_node_is_down() -> None:
    ran = Ran(fault("disk-error", "n1"))
    assert ran.phases() == WHOLE
    failing = [f"fail-{call} None" for call in ("write", "sync", "rename")]
    assert ran.acts_at("n1") == ["start", *failing, "kill", "mend", "start"]


@pytest.mark.parametrize("refuses", [False, True])
def test_a_changed_file_is_met_by_its_node_and_put_back_where_that_has_refused_it(
    *, refuses: bool
) -> None:
    def prepare(cluster: FakeCluster) -> None:
        if refuses:
            cluster.refuses = N1

    ran = Ran(fault("flip", "n1"), prepare=prepare)
    assert ran.phases() == WHOLE
    acts = ran.acts_at("n1")
    assert acts[:5] == ["start", "kill", "remember", "changed", "start"]
    if refuses:
        assert acts[5:7] == ["put-back", "start"]
    assert "log/0.log byte" in ran.evidence("verified")
    assert ("put back" in ran.evidence("removed")) == refuses


def test_a_file_that_changed_since_is_put_back_in_the_middle_of_its_fault() -> None:
    def write_later(cluster: FakeCluster) -> None:
        files = cluster.disk(N1).files
        cluster.world.after(350_000, lambda: files.now.update({"log/0.log": b"RECORDS"}))

    ran = Ran(fault("restore", "n1"), prepare=write_later, beyond_promise=True)
    assert ran.phases() == WHOLE
    assert ran.acts_at("n1") == ["start", "remember", "kill", "put-back", "start"]
    assert ran.cluster.disk(N1).files.now["log/0.log"] == b"records"


# --- recovery ---------------------------------------------------------------------------------


def at(node: str, end: int, known: int) -> tuple[StateEvent, ...]:
    told = (("append", end), ("high-watermark", known))
    return tuple(StateEvent(node, 1, 0, kind, 1, offset=offset) for kind, offset in told)  # type: ignore[arg-type]


def test_a_fault_waits_until_the_one_before_is_over_and_all_nodes_have_caught_up() -> None:
    def lag(cluster: FakeCluster) -> None:
        # n2 misses what came while it was away, and has it 150 ms after it is back.
        def events(node: NodeName) -> tuple[StateEvent, ...]:
            lags = node == N2 and AT <= cluster.world.now < AT + 350_000
            # Its log may be longer, by what it is yet to cut off.
            return at(node, 11 if lags else 9, 4 if lags else 9)

        cluster.state_events = events  # type: ignore[method-assign]

    first = fault("pause", "n2")
    second = fault("kill", "n3", Awaited("recovered"), index=1)
    ran = Ran(first, second, msgspec.structs.replace(second, index=2, target="n1"), prepare=lag)
    assert [ran.phases(index) for index in range(3)] == [WHOLE] * 3
    times = {(event.index, event.phase): event.time // 1000 for event in ran.outcome.faults}
    # At the start of the world all nodes take part.
    assert times[1, "invoked"] < times[1, "removed"] <= times[2, "invoked"]
    late = Ran(first, msgspec.structs.replace(second, at_us=AT + 1), prepare=lag)
    assert AT + 350_000 <= late.story(1)[0].time // 1000 < AT + 400_000


def test_a_node_that_has_not_heard_of_the_leader_takes_no_part() -> None:
    def lag(cluster: FakeCluster) -> None:
        cluster.epoch = lambda node: 0 if node == N2 else 1  # type: ignore[method-assign]

    ran = Ran(fault("kill", "n3", Awaited("recovered", timeout_us=100_000)), prepare=lag)
    assert ran.evidence("not-applicable").endswith("n2 has not heard that n1 leads")


def test_a_fault_does_not_strike_where_the_nodes_never_recover() -> None:
    def be_behind(cluster: FakeCluster) -> None:
        cluster.state_events = lambda node: at(node, 9, 4 if node == N2 else 9)  # type: ignore[method-assign]

    when = Awaited("recovered", timeout_us=100_000)
    ran = Ran(fault("kill", "n3", when), prepare=be_behind)
    assert ran.phases() == ["not-applicable"]
    assert ran.evidence("not-applicable").endswith("within 0.1 s: n2 has not caught up")
