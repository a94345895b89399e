"""A whole node that writes snapshots: its log loses its beginning, and the next life goes on."""

import pytest

from splitbrain.nodes.quorum.settings import QuorumSettings
from splitbrain.nodes.registers.machine import RegisterMachine
from splitbrain.nodes.server.host.applier import Applier
from splitbrain.nodes.server.host.node import Node
from splitbrain.nodes.storage.errors import CorruptStorageError
from splitbrain.nodes.storage.layout import log_folder
from splitbrain.nodes.storage.snapshots import list_snapshots, snapshot_path
from splitbrain.nodes.transport.client_protocol import ClientRequest
from tests.planted import with_bug
from tests.unit.nodes.server.hand_made_world import FOLDER, World, write

OFTEN = QuorumSettings(snapshot_max_new_record_bytes=400)


def started(world: World, settings: QuorumSettings = OFTEN) -> Node:
    node = world.assemble(segment_bytes=300, settings=settings)
    lead(world, node)
    return node


def lead(world: World, node: Node) -> None:
    """Runs until the node leads and has applied all that it has."""
    node.start()
    world.until(
        lambda: (
            node.replica.role == "leader"
            and node.state().applied_offset == node.replica.log_end_offset
        )
    )


def segments(world: World) -> list[str]:
    return [name for name in world.filesystem.list(log_folder(FOLDER)) if name.endswith(".log")]


def work(world: World, node: Node, first: int, count: int = 40) -> None:
    for number in range(first, first + count):
        assert world.ask(node, write(number)).outcome == "ok"
        world.ask(node, ClientRequest(number, "add", "s", number, f"a{number}"))


def worked(settings: QuorumSettings = OFTEN, count: int = 40) -> tuple[World, Node]:
    """A node that has worked, and rests."""
    world = World()
    node = started(world, settings)
    work(world, node, 0, count)
    while world.turns or world.jobs:
        world.turn()
    return world, node


def test_the_log_loses_what_snapshots_stand_for_and_the_next_life_has_it_all() -> None:
    world, node = worked()
    kept = list_snapshots(world.filesystem, FOLDER)
    assert len(kept) == 2
    assert node.replica.log_start_offset == kept[0].end_offset > 40
    assert len(segments(world)) < 12
    digest, end = node.state().digest, node.state().applied_offset
    world.crash()
    node = world.assemble(segment_bytes=300, settings=OFTEN)
    assert node.parts.applier.machine.end_offset == kept[1].end_offset
    assert node.replica.high_watermark == kept[1].end_offset
    lead(world, node)
    assert (node.state().applied_offset, node.state().digest) == (end + 1, digest)
    read = world.ask(node, ClientRequest(9, "read-set", "s"))
    assert read.result == list(range(40))


@pytest.mark.planted("newest-snapshot-removed")
def test_the_next_life_cannot_begin_once_the_newest_snapshot_is_removed() -> None:
    once = QuorumSettings(snapshot_max_new_record_bytes=400, snapshots_retained_count=1)
    world, node = worked(once)
    assert node.replica.log_start_offset > 0
    assert not list_snapshots(world.filesystem, FOLDER)
    world.crash()
    with pytest.raises(CorruptStorageError):
        world.assemble(segment_bytes=300, settings=once)


@pytest.mark.parametrize("in_order", [True, with_bug("applied-out-of-order", False)])
def test_what_is_committed_is_applied_in_order(in_order: bool) -> None:
    _, node = worked(QuorumSettings(), count=3)
    end = node.replica.high_watermark
    applier = Applier(node.parts.disk, RegisterMachine())
    applied: list[int] = []
    applier.apply_up_to(end, lambda offset, *_: applied.append(offset))
    # The one that was overtaken counts as applied already.
    assert (applied == list(range(end))) is in_order


def test_lives_follow_lives_behind_ever_newer_snapshots() -> None:
    world = World()
    for life in range(6):
        node = started(world)
        work(world, node, 100 * life, 12)
        world.crash()
    node = started(world)
    read = world.ask(node, ClientRequest(9, "read-set", "s"))
    assert read.result == [100 * life + number for life in range(6) for number in range(12)]
    assert node.replica.log_start_offset > 60


def test_only_one_snapshot_stays_where_that_is_the_setting() -> None:
    settings = QuorumSettings(snapshot_max_new_record_bytes=400, snapshots_retained_count=1)
    world, node = worked(settings)
    kept = list_snapshots(world.filesystem, FOLDER)
    assert [node.replica.newest_snapshot] == list(kept)
    assert node.replica.log_start_offset == kept[0].end_offset


def test_a_log_in_which_little_happens_gets_none() -> None:
    world, node = worked(QuorumSettings())
    assert list_snapshots(world.filesystem, FOLDER) == ()
    assert node.replica.log_start_offset == 0


def test_a_broken_newest_snapshot_is_ignored_with_a_line_and_the_log_tells_the_rest() -> None:
    world, node = worked()
    digest = node.state().digest
    older, newest = list_snapshots(world.filesystem, FOLDER)
    world.crash()
    world.filesystem.rot(snapshot_path(FOLDER, newest), 90)
    node = world.assemble(segment_bytes=300, settings=OFTEN)
    assert "warning snapshot ignored" in world.lines
    assert node.parts.applier.machine.end_offset == older.end_offset
    lead(world, node)
    assert node.state().digest == digest


def test_without_a_snapshot_that_can_be_used_the_node_does_not_start() -> None:
    world, _ = worked()
    world.crash()
    for snapshot_id in list_snapshots(world.filesystem, FOLDER):
        world.filesystem.rot(snapshot_path(FOLDER, snapshot_id), 90)
    with pytest.raises(CorruptStorageError, match="no snapshot that can be used"):
        world.assemble(segment_bytes=300, settings=OFTEN)
    assert world.events[-1][0] == "fatal"


@pytest.mark.planted("delta-lost-at-snapshot-load")
def test_the_planted_loss_of_what_follows_a_snapshot_shows_in_the_next_life() -> None:
    world, node = worked(count=7)
    digest = node.state().digest
    world.crash()
    node = started(world)
    assert node.state().digest != digest
