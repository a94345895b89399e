"""The network as TCP shows it: hidden losses stay hidden, the rest is shown."""

from splitbrain.history.timeline_records import TimelineMessage
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


def test_a_message_and_its_answer_take_a_delay_each() -> None:
    world = empty_world()
    server, client, connection = connected(world, echoes=True)
    connection.send("a")
    world.run(LATER_US)
    assert server.times == [DELAY_US]
    assert client.answers == [(2 * DELAY_US, "re a")]


def test_each_direction_of_a_connection_is_first_in_first_out() -> None:
    world = empty_world(steady(delay_us_min=1, delay_us_max=100_000))
    server, client, connection = connected(world, echoes=True)
    for number in range(40):
        connection.send(number)
    world.run(LATER_US)
    assert server.messages == list(range(40))
    assert client.messages == [f"re {number}" for number in range(40)]
    assert len(set(server.times)) > 1


def test_order_does_not_hold_across_connections() -> None:
    world = empty_world(steady(delay_us_min=1, delay_us_max=100_000))
    server = Listener(world, "n1")
    for number in range(20):
        world.network.connect("c1", "n1", Opener(world)).send(number)
    world.run(LATER_US)
    assert sorted(server.messages) == list(range(20))
    assert server.messages != list(range(20))


def test_slow_messages_hold_up_those_behind_them() -> None:
    world = empty_world(steady(slow_chance=1.0, slow_us_max=50_000))
    server, _, connection = connected(world)
    for number in range(10):
        connection.send(number)
    world.run(LATER_US)
    assert server.messages == list(range(10))
    assert server.times == sorted(server.times)
    assert max(server.times) > DELAY_US


def test_a_reset_loses_what_is_under_way_and_both_ends_hear_of_it_once() -> None:
    world = empty_world()
    server, client, connection = connected(world)
    connection.send("before")
    world.run(DELAY_US)
    connection.send("under way")
    assert world.network.reset("n1") == 1  # pyright: ignore[reportArgumentType]
    connection.send("after")
    world.run(LATER_US)
    assert server.messages == ["before"]
    assert server.gone == [1]
    assert client.losses == [(2 * DELAY_US, "reset", False)]


def test_a_reset_hits_connections_from_and_to_the_node_only() -> None:
    world = empty_world()
    openers = [Opener(world) for _ in range(3)]
    for place in ("n1", "n2"):
        Listener(world, place)
    for (source, place), opener in zip(
        (("n1", "n2"), ("n2", "n1"), ("c1", "n2")), openers, strict=True
    ):
        world.network.connect(source, place, opener).send("a")
    world.run(DELAY_US)
    assert world.network.reset("n1") == 2  # pyright: ignore[reportArgumentType]
    world.run(LATER_US)
    assert [len(opener.losses) for opener in openers] == [1, 1, 0]


def test_chance_resets_a_connection_instead_of_carrying_a_message() -> None:
    world = empty_world(steady(reset_chance=1.0))
    server, client, connection = connected(world)
    connection.send("a")
    world.run(LATER_US)
    assert server.messages == []
    assert [loss[1:] for loss in client.losses] == [("reset", False)]


def test_an_answer_is_lost_after_its_request_was_executed() -> None:
    world = empty_world(steady(lost_answer_chance=1.0))
    server, client, connection = connected(world, echoes=True)
    connection.send("a")
    world.run(LATER_US)
    assert server.messages == ["a"]
    assert client.messages == []
    assert [loss[1:] for loss in client.losses] == [("reset", False)]
    assert server.gone == [1]


def test_reconnected_while_the_old_request_is_under_way_the_old_one_may_come_later() -> None:
    world = empty_world()
    server, first, second = Listener(world, "n1", echoes=True), Opener(world), Opener(world)
    old = world.network.connect("c1", "n1", first)
    world.network.clog([link("c1", "n1")], 5_000)
    old.send("old")
    old.close()
    world.network.clog([link("c1", "n1")], 0)
    world.network.connect("c1", "n1", second).send("new")
    world.run(LATER_US)
    assert server.messages == ["new", "old"]
    assert first.messages == [], "who closed is told nothing"
    assert second.messages == ["re new"]


def test_a_request_under_way_to_a_dead_process_may_reach_its_next_life() -> None:
    world = empty_world()
    _, client, connection = connected(world)
    connection.send("a")
    world.network.crash("n1")
    second = Listener(world, "n1")
    world.run(LATER_US)
    assert second.messages == ["a"]
    assert client.losses == []


def test_refused_where_nobody_listens() -> None:
    world = empty_world()
    client = Opener(world)
    world.network.connect("c1", "n1", client).send("a")
    world.run(LATER_US)
    assert client.losses == [(2 * DELAY_US, "refused", True)]


def test_the_server_hears_of_a_close_after_all_that_was_sent() -> None:
    world = empty_world(steady(delay_us_min=1, delay_us_max=1_000))
    server, client, connection = connected(world, echoes=True)
    for number in range(10):
        connection.send(number)
    connection.close()
    connection.close()
    connection.send("after the close")
    world.run(LATER_US)
    assert server.messages == list(range(10))
    assert server.gone == [1]
    assert client.messages == []
    assert client.losses == []


def test_the_opener_s_crash_is_heard_after_all_that_it_sent() -> None:
    world = empty_world()
    server, client = Listener(world, "n2", echoes=True), Opener(world)
    world.network.connect("n1", "n2", client).send("a")
    world.network.crash("n1")
    world.run(LATER_US)
    assert server.messages == ["a"]
    assert server.gone == [1]
    assert client.messages == []


def test_an_answer_to_a_connection_of_another_place_is_dropped() -> None:
    world = empty_world()
    _, client, connection = connected(world)
    connection.send("a")
    world.run(DELAY_US)
    world.network.answer("n2", 1, "forged")
    world.network.answer("n1", 77, "to nobody")
    world.run(LATER_US)
    assert client.messages == []


def test_the_story_tells_of_each_message_whether_it_arrived() -> None:
    world = empty_world(is_recording=True)
    _, _, connection = connected(world, echoes=True)
    connection.send("a")
    world.run(1_000)
    connection.send("b")
    world.network.reset("n1")  # pyright: ignore[reportArgumentType]
    world.run(LATER_US)
    told = [
        (record.node, record.peer, record.name, record.fate, record.arrived)
        for record in world.story
        if isinstance(record, TimelineMessage)
    ]
    assert told == [
        ("c1", "n1", "a", "arrived", 100),
        ("n1", "c1", "re a", "arrived", 200),
        ("c1", "n1", "b", "lost", None),
    ]  # fmt: skip


def test_recording_changes_nothing() -> None:
    options = steady(delay_us_max=900, slow_chance=0.2, stall_chance=0.1, reset_chance=0.05)

    def run(*, is_recording: bool) -> list[tuple[object, ...]]:
        world = empty_world(options, seed=9, is_recording=is_recording)
        Listener(world, "n1", echoes=True)
        openers = [Opener(world) for _ in range(5)]
        for opener in openers:
            connection = world.network.connect("c1", "n1", opener)
            for number in range(10):
                connection.send(number)
        world.run(LATER_US)
        return [told for opener in openers for told in (*opener.answers, *opener.losses)]

    assert run(is_recording=False) == run(is_recording=True)
