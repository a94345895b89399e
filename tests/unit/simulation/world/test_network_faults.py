"""Cuts, clogs, stalls and crashes: what they hold up, what they lose, and who hears of it."""

from tests.unit.simulation.world.empty_worlds import (
    DELAY_US,
    LATER_US,
    Listener,
    Opener,
    connected,
    empty_world,
    link,
    steady,
)


def test_a_one_way_cut_stalls_that_way_and_what_it_held_comes_in_order() -> None:
    world = empty_world()
    server, client, connection = connected(world, echoes=True)
    world.network.cut([link("n1", "c1")])
    for number in range(5):
        connection.send(number)
    world.run(1_000)
    assert server.messages == list(range(5)), "the other way is whole"
    assert client.messages == []
    assert world.network.waiting_count([link("n1", "c1")]) == 5
    world.network.restore([link("n1", "c1")])
    connection.send(5)
    world.run(LATER_US)
    assert client.messages == [f"re {number}" for number in range(6)]
    assert client.losses == []


def test_what_is_sent_between_the_heal_and_the_release_stays_behind_what_waited() -> None:
    world = empty_world(steady(delay_us_min=1, delay_us_max=1_000))
    server, _, connection = connected(world)
    world.network.cut([link("c1", "n1")])
    for number in range(30):
        connection.send(number)
    world.run(5_000)
    world.network.restore([link("c1", "n1")])
    for number in range(30, 60):
        connection.send(number)
        world.run(world.now + 40)
    world.run(LATER_US)
    assert server.messages == list(range(60))


def test_a_link_that_is_cut_twice_is_open_when_it_is_restored() -> None:
    world = empty_world()
    server = Listener(world, "n1")
    there = [link("c1", "n1")]
    world.network.cut(there)
    world.network.cut(there)
    world.network.connect("c1", "n1", Opener(world)).send("a")
    world.run(1_000)
    assert server.messages == []
    assert world.network.is_cut("c1", "n1")
    world.network.restore(there)
    world.run(LATER_US)
    assert server.messages == ["a"]
    assert not world.network.is_cut("c1", "n1")


def test_restoring_a_whole_link_does_nothing() -> None:
    world = empty_world()
    world.network.restore([link("c1", "n1")])
    world.network.cut([link("c1", "n1")])
    assert world.network.is_cut("c1", "n1")


def test_a_partial_partition_leaves_the_third_in_reach_of_both() -> None:
    world = empty_world()
    servers = {place: Listener(world, place) for place in ("n1", "n2", "n3")}
    world.network.cut([link("n1", "n2"), link("n2", "n1")])
    for source in servers:
        for place in servers:
            if source != place:
                world.network.connect(source, place, Opener(world)).send(source)
    world.run(LATER_US)
    assert sorted(servers["n1"].messages) == ["n3"]
    assert sorted(servers["n2"].messages) == ["n3"]
    assert sorted(servers["n3"].messages) == ["n1", "n2"]


def test_a_cut_that_heals_again_and_again_keeps_order() -> None:
    world = empty_world(steady(delay_us_min=10, delay_us_max=300))
    server, _, connection = connected(world)
    there = [link("c1", "n1")]
    for number in range(100):
        connection.send(number)
        if number % 7 == 3:
            world.network.cut(there)
        if number % 7 == 6:
            world.network.restore(there)
        world.run(world.now + 35)
    while world.network.is_cut("c1", "n1"):
        world.network.restore(there)
    world.run(LATER_US)
    assert server.messages == list(range(100))


def test_a_clog_delays_one_way_until_it_is_healed() -> None:
    world = empty_world()
    server, client, connection = connected(world, echoes=True)
    world.network.clog([link("c1", "n1")], 5_000)
    connection.send("a")
    world.run(6_000)
    assert server.times == [DELAY_US + 5_000]
    assert client.answers == [(5_000 + 2 * DELAY_US, "re a")]
    world.network.clog([link("c1", "n1")], 0)
    connection.send("b")
    world.run(LATER_US)
    assert server.times[1] == 6_000 + DELAY_US


def test_a_stall_holds_up_one_connection_and_one_direction_only() -> None:
    world = empty_world(steady(stall_chance=1.0, stall_us_max=1_000_000), seed=3)
    server = Listener(world, "n1")
    stalled = world.network.connect("c1", "n1", Opener(world))
    stalled.send("stalled")
    world.network._options = steady()
    world.network.connect("c1", "n1", Opener(world)).send("free")
    world.run(DELAY_US)
    assert server.messages == ["free"]
    world.network.answer("n1", server.requests[0][0], "answer")
    world.run(LATER_US)
    assert server.messages == ["free", "stalled"]
    assert server.times[1] > 2 * DELAY_US


def test_after_a_crash_the_other_end_hears_a_reset() -> None:
    world = empty_world()
    server, client, connection = connected(world)
    connection.send("a")
    world.run(1_000)
    world.network.crash("n1")
    world.run(LATER_US)
    assert client.losses == [(1_000 + DELAY_US, "reset", False)]
    assert server.gone == [], "a dead process is told nothing"


def test_half_open_the_other_end_waits_and_the_next_life_resets_it() -> None:
    world = empty_world(steady(half_open_chance=1.0))
    _, client, connection = connected(world)
    connection.send("a")
    world.run(1_000)
    world.network.crash("n1")
    world.run(LATER_US)
    assert client.losses == [], "nothing tells it"
    second = Listener(world, "n1")
    connection.send("b")
    world.run(2 * LATER_US)
    assert second.messages == [], "a connection of an earlier life is unknown here"
    assert [loss[1:] for loss in client.losses] == [("reset", False)]


def test_half_open_towards_a_machine_without_a_process_is_reset_not_refused() -> None:
    world = empty_world(steady(half_open_chance=1.0))
    _, client, connection = connected(world)
    connection.send("a")
    world.run(1_000)
    world.network.crash("n1")
    connection.send("b")
    world.run(LATER_US)
    assert [loss[1:] for loss in client.losses] == [("reset", False)]


def test_the_reset_of_a_dead_process_does_not_pass_a_cut() -> None:
    world = empty_world()
    _, client, connection = connected(world)
    connection.send("a")
    world.run(1_000)
    back = [link("n1", "c1")]
    world.network.cut(back)
    world.network.crash("n1")
    connection.send("b")
    world.run(LATER_US)
    assert client.losses == [], "nothing comes through"
    world.network.restore(back)
    Listener(world, "n1")
    connection.send("c")
    world.run(2 * LATER_US)
    assert [loss[1:] for loss in client.losses] == [("reset", False)]


def test_a_refusal_does_not_pass_a_cut() -> None:
    world = empty_world()
    client = Opener(world)
    world.network.cut([link("n1", "c1")])
    connection = world.network.connect("c1", "n1", client)
    connection.send("a")
    world.run(LATER_US)
    assert client.losses == []
    listening = Listener(world, "n1")
    world.network.restore([link("n1", "c1")])
    connection.send("b")
    world.run(2 * LATER_US)
    assert listening.messages == [], "a later message never overtakes a lost one"
    assert len(client.losses) == 1


def test_answers_of_a_dead_process_that_were_under_way_still_arrive_half_open() -> None:
    world = empty_world(steady(half_open_chance=1.0))
    _, client, connection = connected(world, echoes=True)
    connection.send("a")
    world.run(DELAY_US)
    world.network.crash("n1")
    world.run(LATER_US)
    assert client.messages == ["re a"]


def test_a_close_waits_at_a_cut() -> None:
    world = empty_world()
    server, _, connection = connected(world)
    connection.send("a")
    world.run(DELAY_US)
    world.network.cut([link("c1", "n1")])
    connection.close()
    world.run(LATER_US)
    assert server.gone == []
    world.network.restore([link("c1", "n1")])
    world.run(2 * LATER_US)
    assert server.gone == [1]


def test_calm_no_chance_strikes_and_stalls_end_but_cuts_stay() -> None:
    world = empty_world(steady(stall_chance=1.0, stall_us_max=LATER_US, half_open_chance=1.0))
    servers = {place: Listener(world, place, echoes=True) for place in ("n1", "n2")}
    client, other = Opener(world), Opener(world)
    connection = world.network.connect("c1", "n1", client)
    connection.send("a")
    world.network.cut([link("c1", "n2")])
    world.network.connect("c1", "n2", other).send("b")
    world.run(1_000)
    assert client.messages == []
    world.network.calm_down()
    world.run(1_000 + 2 * DELAY_US)
    assert client.messages == ["re a"]
    assert servers["n2"].messages == []
    world.network.crash("n1")
    world.run(LATER_US)
    assert len(client.losses) == 1, "no crash leaves anybody waiting any more"


def test_calm_all_chances_are_over() -> None:
    world = empty_world(
        steady(reset_chance=1.0, lost_answer_chance=1.0, slow_chance=1.0, stall_chance=1.0)
    )
    Listener(world, "n1", echoes=True)
    world.network.calm_down()
    client = Opener(world)
    world.network.connect("c1", "n1", client).send("a")
    world.run(LATER_US)
    assert client.answers == [(2 * DELAY_US, "re a")]


def test_who_hangs_up_is_heard_after_all_that_it_had_sent() -> None:
    world = empty_world(steady(delay_us_min=1, delay_us_max=1_000))
    Listener(world, "n1", echoes=True)
    client = Opener(world)
    connection = world.network.connect("c1", "n1", client)
    for number in range(20):
        connection.send(number)
    world.run(2_000)
    world.network.hang_up("n1")
    world.run(LATER_US)
    assert client.messages == [f"re {number}" for number in range(20)]
    assert [(reason, refused) for _, reason, refused in client.losses] == [("closed", False)]
    late = Opener(world)
    world.network.connect("c1", "n1", late).send("late")
    world.run(2 * LATER_US)
    assert [refused for _, _, refused in late.losses] == [True]


def test_who_hangs_up_behind_a_cut_is_heard_when_it_is_restored() -> None:
    world = empty_world()
    Listener(world, "n1", echoes=True)
    client = Opener(world)
    world.network.connect("c1", "n1", client).send("a")
    world.run(1_000)
    world.network.cut([link("n1", "c1")])
    world.network.hang_up("n1")
    world.run(LATER_US)
    assert client.losses == []
    world.network.restore([link("n1", "c1")])
    world.run(2 * LATER_US)
    assert [reason for _, reason, _ in client.losses] == ["closed"]


def test_who_hangs_up_closes_its_own_connections_too() -> None:
    world = empty_world()
    server, client = Listener(world, "n2"), Opener(world)
    connection = world.network.connect("n1", "n2", client)
    connection.send("a")
    world.run(1_000)
    world.network.hang_up("n1")
    world.run(LATER_US)
    assert server.gone == [1]
    assert client.losses == []


def test_messages_on_a_clogged_link_are_late() -> None:
    world = empty_world()
    server, there = Listener(world, "n1", echoes=True), [link("c1", "n1")]
    connection = world.network.connect("c1", "n1", Opener(world))
    connection.send("before")
    world.run(1_000)
    world.network.clog(there, 1_000_000)
    connection.send("slow")
    world.run(LATER_US)
    assert server.times[1] == 1_000 + 1_000_000 + DELAY_US


def test_the_opener_is_told_once_that_its_connection_is_made_before_any_answer() -> None:
    world = empty_world()
    client = Opener(world)
    heard: list[tuple[int, int]] = []
    opened = world.network.connect(
        "c1", "n1", client, opened=lambda: heard.append((world.now, len(client.answers)))
    )
    Listener(world, "n1", echoes=True)
    opened.send("a")
    opened.send("b")
    world.run(LATER_US)
    assert heard == [(2 * DELAY_US, 0)]
    assert client.messages == ["re a", "re b"]


def test_a_link_that_answers_with_resets_ends_connections_at_their_next_message() -> None:
    world = empty_world()
    server, client, connection = connected(world)
    connection.send("before")
    world.run(DELAY_US)
    world.network.answer_with_resets([link("c1", "n1")])
    world.run(LATER_US)
    assert client.losses == []
    connection.send("after")
    world.run(2 * LATER_US)
    assert server.messages == ["before"]
    assert [(reason, refused) for _, reason, refused in client.losses] == [("reset", False)]
    assert server.gone == [1]


def test_new_connections_are_refused_as_long_as_a_fault_has_the_link_answer_with_resets() -> None:
    world = empty_world()
    server = Listener(world, "n1")
    there = [link("c1", "n1")]
    world.network.answer_with_resets(there)
    for healed, expected in ((1, "refused"), (2, None)):
        if expected is None:
            world.network.answer_no_more(there)
        opener = Opener(world)
        world.network.connect("c1", "n1", opener).send(healed)
        world.run(healed * LATER_US)
        assert [reason for _, reason, _ in opener.losses] == ([expected] if expected else [])
    assert server.messages == [2]


def test_a_link_that_answers_with_resets_lets_the_other_way_and_other_links_pass() -> None:
    world = empty_world()
    listeners = {place: Listener(world, place, echoes=True) for place in ("n1", "n2")}
    world.network.answer_with_resets([link("n1", "n2")])
    there, back, beside = Opener(world), Opener(world), Opener(world)
    world.network.connect("n1", "n2", there).send("there")
    world.network.connect("n2", "n1", back).send("back")
    world.network.connect("c1", "n2", beside).send("beside")
    world.run(LATER_US)
    assert (listeners["n1"].messages, listeners["n2"].messages) == (["back"], ["beside"])
    assert len(there.losses) == 1
    # An answer along the link meets the reset as well.
    assert back.messages == []
    assert len(back.losses) == 1
    assert beside.messages == ["re beside"]
