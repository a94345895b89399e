"""A whole node in one thread, without an event loop: everything outside it is made by hand."""

import errno
from collections.abc import Sequence

import pytest

from splitbrain.nodes.quorum.effects import AdvanceHighWatermark, AppendRecords, Effect, SendRequest
from splitbrain.nodes.quorum.epoch_limit import EPOCH_MAX
from splitbrain.nodes.quorum.errors import StorageMismatch
from splitbrain.nodes.quorum.events import Event
from splitbrain.nodes.quorum.identifiers import ConnectionId, Epoch
from splitbrain.nodes.quorum.persistent import QuorumState
from splitbrain.nodes.server.host import exit_codes
from splitbrain.nodes.server.host.node import RESIGNATION_US_MAX, Node, NodeParts
from splitbrain.nodes.server.host.surroundings import Surroundings
from splitbrain.nodes.storage.errors import CorruptStorageError
from splitbrain.nodes.storage.quorum_state import QuorumStateFile
from splitbrain.nodes.transport.client_protocol import ClientRequest
from splitbrain.simulation.disk.file_system import MemoryFileSystem
from tests.unit.nodes.server.hand_made_world import FOLDER, World, write


class CutOff(BaseException):
    """The power goes."""


def test_one_voter_leads_commits_and_reads() -> None:
    world = World()
    node = world.assemble()
    world.lead(node)
    written = world.ask(node, write(7))
    assert (written.outcome, written.offset, written.epoch) == ("ok", 1, 1)
    read = world.ask(node, ClientRequest(8, "read", "r"))
    assert (read.outcome, read.result) == ("ok", 7)
    state = node.state()
    assert (state.role, state.high_watermark, state.applied_offset) == ("leader", 2, 2)


def test_the_same_world_gives_the_same_life_to_the_microsecond() -> None:
    def life() -> tuple[int, str, list[tuple[str, int, str | None]]]:
        world = World()
        node = world.assemble()
        world.lead(node)
        for number in range(20):
            world.ask(node, write(number))
        return world.time_us, node.state().digest, world.events

    assert life() == life()


def test_what_was_acknowledged_is_there_in_the_next_life() -> None:
    world = World()
    node = world.assemble(segment_bytes=200)
    world.lead(node)
    for number in range(10):
        assert world.ask(node, write(number)).outcome == "ok"
    assert len([name for name in world.filesystem.list(FOLDER / "__cluster_metadata-0")
                if name.endswith(".log")]) > 1  # fmt: skip
    world.crash()
    again = world.assemble()
    assert (node.parts.incarnation, again.parts.incarnation) == (0, 1)
    world.lead(again)
    assert world.ask(again, ClientRequest(1, "read", "r")).result == 9


@pytest.mark.planted("ack-before-fsync")
def test_acknowledged_before_fsync_is_gone_with_the_power() -> None:
    world = World()
    node = world.assemble()
    world.lead(node)
    assert world.ask(node, write(7)).outcome == "ok"
    world.crash()
    again = world.assemble()
    world.lead(again)
    assert world.ask(again, ClientRequest(1, "read", "r")).result is None


class Watched(Node):
    """Notes steps and effects, and is cut off before the effect that is named."""

    def __init__(self, parts: NodeParts, surroundings: Surroundings) -> None:
        super().__init__(parts, surroundings)
        self.taken: list[Event] = []
        self.performed: list[Effect] = []
        self.fatal: type[Effect] | None = None

    def take(self, event: Event) -> Sequence[Effect]:
        self.taken.append(event)
        return super().take(event)

    def perform(self, effect: Effect) -> None:
        if type(effect) is self.fatal:
            raise CutOff
        self.performed.append(effect)
        super().perform(effect)


def watched(world: World) -> Watched:
    node = world.assemble(Watched)
    assert isinstance(node, Watched)
    return node


def test_a_watcher_sees_every_step_and_every_effect() -> None:
    world = World()
    node = watched(world)
    world.lead(node)
    world.ask(node, write(1))
    assert type(node.taken[0]).__name__ == "Started"
    kinds = [type(effect) for effect in node.performed]
    assert kinds.index(AppendRecords) < len(kinds) - kinds[::-1].index(AdvanceHighWatermark) - 1


def test_a_life_that_is_cut_off_says_and_does_nothing_more() -> None:
    world = World()
    node = watched(world)
    world.lead(node)
    node.fatal = AppendRecords
    said = len(world.events), len(world.lines), len(node.performed)
    with pytest.raises(CutOff):
        world.ask(node, write(1))
    node.resign()
    node.end(exit_codes.STOPPED, "too late")
    assert (len(world.events), len(world.lines), len(node.performed)) == said
    assert node.has_ended
    assert world.ends == []


def test_a_failed_disk_ends_the_node_once() -> None:
    world = World()
    node = world.assemble()
    world.lead(node)
    world.filesystem.fault = lambda action, path: errno.EIO if action == "sync" else None
    node.service.handle(write(1), world.answers.append)
    world.until(lambda: node.has_ended)
    node.end(exit_codes.STOPPED, "too late")
    ((code, reason),) = world.ends
    assert code == exit_codes.DISK_FAILED
    assert "disk failed" in reason
    node.close()
    assert [answer.outcome for answer in world.answers] == ["unknown"]
    assert world.events[-1][0] == "closed"


def test_rot_that_a_job_of_the_disk_meets_ends_the_node_as_corrupt() -> None:
    world = World()
    node = world.assemble()
    world.lead(node)
    node.service.handle(write(1), world.answers.append)
    world.until(lambda: bool(world.jobs))

    def meet_rot() -> None:
        raise CorruptStorageError(FOLDER / "log", "the batches do not follow each other")

    world.jobs[0] = (meet_rot, world.jobs[0][1])
    world.until(lambda: node.has_ended)
    ((code, reason),) = world.ends
    assert code == exit_codes.CORRUPT
    assert "the batches do not follow each other" in reason
    assert "disk failed" not in reason


def test_an_unexpected_exception_is_a_defect_and_ends_the_node() -> None:
    def surprise(effect: Effect) -> None:
        raise LookupError("surprise")

    world = World()
    node = world.assemble()
    node.perform = surprise  # type: ignore[method-assign]
    node.start()
    assert [str(defect) for defect in world.defects] == ["surprise"]
    assert [code for code, _ in world.ends] == [exit_codes.DEFECT]


def test_a_node_without_peers_stops_at_once() -> None:
    world = World()
    node = world.assemble()
    world.lead(node)
    node.stop()
    assert world.ends == [(exit_codes.STOPPED, "asked to stop")]
    assert world.events[-1][0] == "stopped"


def test_a_stopping_node_waits_for_its_peers_but_not_for_long() -> None:
    world = World((1, 2, 3))
    node = watched(world)
    node.start()
    world.until(lambda: any(isinstance(each, SendRequest) for each in node.performed))
    asked_us = world.time_us
    node.stop()
    node.stop()
    assert world.ends == []
    world.until(lambda: node.has_ended)
    assert world.ends == [(exit_codes.STOPPED, "asked to stop")]
    assert world.time_us == asked_us + RESIGNATION_US_MAX


def test_a_stopping_node_ends_when_its_peers_have_answered() -> None:
    world = World((1, 2, 3))
    node = watched(world)
    node.start()
    world.until(lambda: bool(world.sent))
    node.stop()
    peer, correlation, _ = world.sent[-1]
    asked_us = world.time_us
    world.is_idle = True
    node.failed(peer, correlation, "connection lost", refused=False)
    assert world.ends == [(exit_codes.STOPPED, "asked to stop")]
    assert world.time_us == asked_us


def test_what_cannot_be_recovered_is_told_and_leaves_nothing_open() -> None:
    world = World()
    node = world.assemble()
    world.lead(node)
    world.crash()
    quorum_state = QuorumStateFile(world.filesystem, FOLDER)
    quorum_state.write(QuorumState(Epoch(0), None, None, None))
    for _ in range(2):  # the folder's lock is free again
        with pytest.raises(StorageMismatch):
            world.assemble()
        assert world.events[-1][0] == "fatal"


def test_a_wiped_disk_is_formatted_under_another_directory_id() -> None:
    world = World()
    world.filesystem = MemoryFileSystem()
    assert world.format(has_lived=True) == "f" * 32
    assert world.format(has_lived=True) is None
    assert world.assemble().parts.identity.directory_id == "f" * 32


def test_a_deadline_that_passes_during_a_truncation_rings_once_and_is_met_after_it() -> None:
    world = World((1, 2, 3))
    node = world.assemble()
    node.start()
    node.parts.disk.is_truncating = True
    world.time_us += 10_000_000
    ringing = [handle.action for handle in world.handles if handle.action is not None]
    world.handles.clear()
    for action in ringing:
        action()
    assert world.handles == []
    assert node.replica.role == "unattached"
    node.parts.disk.is_truncating = False
    node.disconnected(ConnectionId(1))
    assert node.replica.role == "prospective"
    assert world.handles


def test_a_node_in_an_epoch_without_a_next_one_says_so_and_serves_on() -> None:
    world = World()
    state = QuorumState(Epoch(EPOCH_MAX - 1), None, None, None)
    QuorumStateFile(world.filesystem, FOLDER).write(state)
    node = world.assemble()
    node.start()
    world.until(lambda: "warning does not stand" in world.lines)
    assert world.ask(node, write(7)).outcome == "not-leader"
    assert (node.state().epoch, world.ends, world.defects) == (EPOCH_MAX - 1, [], [])
