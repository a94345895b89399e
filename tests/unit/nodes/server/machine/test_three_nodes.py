"""Three whole nodes in one event loop on loopback ports, with real storage."""

import asyncio
import errno
import shutil
import socket
from pathlib import Path

import pytest

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.operations import Operation
from splitbrain.contracts.system import Route
from splitbrain.nodes.quorum.effects import Halt
from splitbrain.nodes.quorum.errors import InvariantViolation
from splitbrain.nodes.server.host import exit_codes
from splitbrain.nodes.server.machine.assembly import serve
from splitbrain.nodes.server.machine.data_folder import format_data_folder_if_empty
from splitbrain.nodes.server.start.quorum_settings import quorum_settings
from splitbrain.nodes.storage.disk import DiskFile
from tests.unit.nodes.server.nodes_in_one_loop import (
    PATIENCE_S,
    Nodes,
    on_three_nodes,
    on_uvloop,
    run,
)


def test_three_nodes_elect_commit_and_read(tmp_path: Path) -> None:
    async def body(nodes: Nodes) -> None:
        leader = await nodes.leader()
        assert await nodes.invoke(Operation("write", "r", 1)) == ("ok", 1)
        assert await nodes.invoke(Operation("read", "r", None)) == ("ok", 1)
        pinned = Route("pinned", leader)
        assert await nodes.invoke(Operation("cas", "r", [1, 2]), pinned) == ("ok", [1, 2, True])

    nodes = run(tmp_path, body)
    digests = {server.state().digest for server in nodes.servers.values()}
    assert len(digests) <= 2  # a follower may not have heard of the last commit


def test_a_leader_that_resigns_is_replaced_and_a_restarted_node_follows(tmp_path: Path) -> None:
    async def body(nodes: Nodes) -> None:
        old = await nodes.leader()
        await nodes.invoke(Operation("write", "r", 1))
        nodes.servers[old].stop()
        assert await nodes.end_of(old) == exit_codes.STOPPED
        new = await nodes.leader()
        assert new != old
        await nodes.invoke(Operation("write", "r", 2))
        await nodes.start(old)
        await nodes.leader()
        assert await nodes.invoke(Operation("read", "r", None)) == ("ok", 2)
        async with asyncio.timeout(PATIENCE_S):
            digest = nodes.servers[new].state().digest
            while nodes.servers[old].state().digest != digest:  # noqa: ASYNC110 - polls a node
                await asyncio.sleep(0.01)

    nodes = run(tmp_path, body)
    assert {event.incarnation for node in nodes.nodes() for event in nodes.events(node)} == {0, 1}


@on_three_nodes()
async def test_a_leader_that_ends_without_a_word_is_missed_because_nobody_listens(
    nodes: Nodes,
) -> None:
    await nodes.leader()
    await nodes.invoke(Operation("write", "r", 1))  # so that its followers have heard it
    old = await nodes.leader()
    nodes.servers[old].node.end(exit_codes.DEFECT, "killed")
    await nodes.end_of(old)
    new = await nodes.leader()
    assert await nodes.invoke(Operation("read", "r", None)) == ("ok", 1)
    reasons = [event.reason for event in nodes.events(new) if event.role == "prospective"]
    assert f"nobody listens at leader {old[1:]}" in reasons


@on_three_nodes()
async def test_a_wiped_voter_counts_its_lives_on_and_says_that_its_disk_is_another(
    nodes: Nodes,
) -> None:
    leader = await nodes.leader()
    wiped = next(node for node in nodes.nodes() if node != leader)
    nodes.servers[wiped].stop()
    await nodes.end_of(wiped)
    shutil.rmtree(nodes.configuration(wiped).data_folder)
    await nodes.start(wiped)
    starts = [event for event in nodes.events(wiped) if event.kind == "started"]
    assert [event.incarnation for event in starts] == [0, 1]
    first, second = (event.detail["directory_id"] for event in starts)
    assert first == nodes.configuration(wiped).directory_id
    assert second != first


def test_a_failed_fsync_stops_the_node_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing: list[str] = []
    sync = DiskFile.sync

    def failing_sync(file: DiskFile) -> None:
        if failing and failing[0] in str(file.path) and file.path.suffix == ".log":
            raise OSError(errno.EIO, "Input/output error")
        sync(file)

    monkeypatch.setattr(DiskFile, "sync", failing_sync)

    async def body(nodes: Nodes) -> None:
        leader = await nodes.leader()
        failing.append(f"/{leader}/")
        # Whoever leads by now: the node has to flush this record, and cannot. The write may be
        # acknowledged all the same, by the other two.
        await nodes.invoke(Operation("write", "r", 1))
        assert await nodes.end_of(leader) == exit_codes.DISK_FAILED
        last = nodes.events(leader)[-1]
        assert last.kind == "fatal"
        assert "Input/output error" in (last.reason or "")
        assert await nodes.leader() != leader

    run(tmp_path, body)


@on_three_nodes()
async def test_a_rotten_log_is_refused_at_the_start(nodes: Nodes) -> None:
    leader = await nodes.leader()
    for number in range(3):
        await nodes.invoke(Operation("write", "r", number))
    nodes.servers[leader].stop()
    await nodes.end_of(leader)
    _spoil(Path(nodes.configuration(leader).data_folder))
    with pytest.raises(Exception, match="corrupt"):
        await nodes.start(leader)
    last = nodes.events(leader)[-1]
    assert (last.kind, last.incarnation) == ("fatal", 1)
    assert "corrupt" in (last.reason or "")


def test_a_halt_ends_the_node_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(nodes: Nodes) -> None:
        leader = await nodes.leader()
        replica = nodes.servers[leader].node.replica
        monkeypatch.setattr(replica, "step", lambda now, event: (Halt("two leaders"),))
        assert await nodes.end_of(leader) == exit_codes.HALTED
        last = nodes.events(leader)[-1]
        assert (last.kind, last.reason) == ("fatal", "two leaders")

    run(tmp_path, body)


def test_a_violated_invariant_ends_the_node_with_its_id_and_story(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def violate(now: int, event: object) -> None:
        raise InvariantViolation("INV-07", "7 is above 5", ("what came before",))

    async def body(nodes: Nodes) -> None:
        leader = await nodes.leader()
        monkeypatch.setattr(nodes.servers[leader].node.replica, "step", violate)
        assert await nodes.end_of(leader) == exit_codes.HALTED
        assert nodes.events(leader)[-1].reason == "INV-07 violated: 7 is above 5"

    run(tmp_path, body)
    assert "what came before" in capfd.readouterr().out


@on_three_nodes()
async def test_the_first_reason_to_end_stands(nodes: Nodes) -> None:
    leader = await nodes.leader()
    server = nodes.servers[leader]
    server.node.end(exit_codes.HALTED, "told so by the test")
    server.node.end(exit_codes.STOPPED, "too late")
    assert await nodes.end_of(leader) == exit_codes.HALTED
    last = nodes.events(leader)[-1]
    assert (last.kind, last.reason) == ("fatal", "told so by the test")


def test_an_exception_that_nobody_expected_ends_the_node(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    nodes = Nodes(tmp_path)
    configuration = nodes.configuration(NodeName("n1"))
    format_data_folder_if_empty(configuration)

    def surprise() -> None:
        raise LookupError("surprise")

    async def main() -> int:
        asyncio.get_running_loop().call_later(0.05, surprise)
        return await serve(configuration, quorum_settings({}))

    assert on_uvloop(main()) == exit_codes.DEFECT
    assert "Traceback" in capfd.readouterr().err
    last = nodes.events(NodeName("n1"))[-1]
    assert last.kind == "fatal"
    assert "surprise" in (last.reason or "")


def test_a_node_that_cannot_write_its_state_events_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def body(nodes: Nodes) -> None:
        leader = await nodes.leader()
        # A follower reports when its leader's answer arrives: an event loop that has a transport's
        # callback raise OSError closes the connection and tells nobody.
        follower = next(node for node in nodes.nodes() if node != leader)
        monkeypatch.setattr(nodes.servers[follower].node.surroundings.state_events, "write", full)
        await nodes.invoke(Operation("write", "r", 1))
        assert await nodes.end_of(follower) == exit_codes.DISK_FAILED

    run(tmp_path, body)


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path)
    configuration = nodes.configuration(NodeName("n1"))
    format_data_folder_if_empty(configuration)
    listener = configuration.client_listener
    with socket.create_server((listener.host, listener.port)):
        code = on_uvloop(serve(configuration, quorum_settings({})))
    assert code == exit_codes.UNUSABLE
    assert "cannot listen" in (nodes.events(NodeName("n1"))[-1].reason or "")


def _spoil(data_folder: Path) -> None:
    (segment,) = data_folder.glob("*/*.log")
    content = bytearray(segment.read_bytes())
    content[70] ^= 1
    segment.write_bytes(content)
