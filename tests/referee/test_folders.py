"""A controller of one make lives on in the folder of the other's.

Each make writes log and snapshots of the same stream of requests; nodes of the other start on
copies of their folders, serve what was there, take more, and write snapshots of their own.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import msgspec
import pytest

from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY
from splitbrain.nodes.server.host.exit_codes import STOPPED
from splitbrain.nodes.server.machine.commands import main
from splitbrain.nodes.server.machine.configuration import (
    Listener,
    NodeConfiguration,
    encode_configuration,
)
from splitbrain.nodes.storage.layout import log_folder, segment_name
from splitbrain.nodes.storage.reading import log_start
from splitbrain.nodes.wire.families.topics import CreateTopicsRequest, DeleteTopicsRequest
from tests.referee.admin_streams import Side, Way, question
from tests.referee.cluster import Cluster, deployed
from tests.referee.controllers import KAFKA_DATA, OWN_DATA
from tests.referee.folders import content, image_in, image_of, snapshots
from tests.referee.known import CHOSEN_PREFIX
from tests.referee.stream_clusters import KAFKA, OWN, addresses, connected, is_whole, tidy

pytestmark = [pytest.mark.containers, pytest.mark.nightly, pytest.mark.timeout(900)]

_PATIENCE_S = 150.0
_REQUESTS = 300
_OFTEN = {"metadata.log.max.record.bytes.between.snapshots": "4000"}
#: Kafka's keep a log's beginning while it is small, and look once in a minute.
_KAFKA_FORGETS = {"metadata.max.retention.bytes": "8000"}


def test_kafkas_controllers_live_on_in_our_folders(tmp_path: Path) -> None:
    writers = replace(OWN, settings={**OWN.settings, **_OFTEN})
    with deployed(tmp_path / "own", writers, brokers=0) as cluster:
        image = _fill(cluster)
        folders = _stopped(cluster, OWN_DATA)
    _assert_read(folders, image)
    heirs = replace(KAFKA, seeds=folders, settings={**KAFKA.settings, **_OFTEN})
    with deployed(tmp_path / "kafka", heirs, brokers=0, run_id=cluster.run_id) as living:
        later = _live_on(living, image)
        _assert_written(_stopped(living, KAFKA_DATA), later, image)


def test_our_controllers_live_on_in_kafkas_folders(tmp_path: Path) -> None:
    settings = {**KAFKA.settings, **_OFTEN, **_KAFKA_FORGETS}
    with deployed(tmp_path / "kafka", replace(KAFKA, settings=settings), brokers=0) as cluster:
        image = _fill(cluster)
        folders = _stopped(cluster, KAFKA_DATA)
    _assert_read(folders, image)
    for node_id, folder in folders.items():
        _adopt(cluster, node_id, folder)
    heirs = replace(OWN, seeds=folders, settings={**OWN.settings, **_OFTEN})
    with deployed(tmp_path / "own", heirs, brokers=0, run_id=cluster.run_id) as living:
        later = _live_on(living, image)
        _assert_written(_stopped(living, OWN_DATA), later, image)


def _adopt(cluster: Cluster, node_id: int, folder: Path) -> None:
    """As who runs the node does, with its configuration."""
    anywhere = Listener("127.0.0.1", 0)
    configuration = NodeConfiguration(
        name=f"n{node_id}",
        node_id=node_id,
        directory_id=NO_DIRECTORY,
        cluster_id=cluster.cluster_id,
        voters=cluster.voters,
        quorum_listener=anywhere,
        client_listener=anywhere,
        data_folder=str(folder),
        state_machine="metadata",
    )
    path = folder.parent / f"n{node_id}.json"
    path.write_bytes(encode_configuration(configuration))
    assert main(["adopt", "--config", str(path)]) == STOPPED


def _fill(cluster: Cluster) -> MetadataImage:
    """Have much written and its beginning removed; one node misses that, and gets a snapshot."""
    with _side(cluster) as side:
        tidy(side)
        missing = next(voter.node_id for voter in cluster.voters if voter.node_id != side.active_id)
        end = side.follower.image().provenance
        cluster.kill(missing)
        _ask(side, range(_REQUESTS))

        def is_beginning_gone() -> bool:
            return side.follower.is_too_late(end.end_offset, end.epoch)

        cluster.await_true("the log's beginning is removed", is_beginning_gone, _PATIENCE_S)
        cluster.start(missing)
        _await_level(cluster, side)
        return side.follower.image()


def _live_on(cluster: Cluster, image: MetadataImage) -> MetadataImage:
    """Find everything there, and have more written."""
    with _side(cluster) as side:
        assert content(side.image) == content(image)
        _ask(side, range(_REQUESTS, 2 * _REQUESTS))
        _await_level(cluster, side)
        later = side.follower.image()
    assert content(later) != content(image)
    return later


def _ask(side: Side, numbers: range) -> None:
    for number in numbers:
        asked = question(Random(f"folders/{number}"), side.known)
        if not _is_passed_over(asked.request):
            side.ask(replace(asked, way=Way.DIRECT))


def _is_passed_over(request: msgspec.Struct) -> bool:
    """Where nothing is deleted, nothing is created that is asked about with care until it is.

    Where Kafka's read a topic's config and its removal at once, as at a start, they keep the config
    (``ConfigurationsDelta``), and write it into their next snapshot.
    """
    if isinstance(request, CreateTopicsRequest):
        return any(topic.name.startswith(CHOSEN_PREFIX) for topic in request.topics)
    return isinstance(request, DeleteTopicsRequest)


def _await_level(cluster: Cluster, side: Side) -> None:
    def is_level() -> bool:
        described = side.active.describe_quorum()
        return {voter.end_offset for voter in described.voters} == {described.high_watermark}

    cluster.await_true("all have the whole log", is_level, _PATIENCE_S)


def _stopped(cluster: Cluster, data: str) -> dict[int, Path]:
    for voter in cluster.voters:
        cluster.kill(voter.node_id)
    return {voter.node_id: cluster.collect_data(voter.node_id) / data for voter in cluster.voters}


def _assert_read(folders: Mapping[int, Path], image: MetadataImage) -> None:
    for folder in folders.values():
        assert log_start(folder).end_offset > 0
        assert content(image_in(folder)) == content(image)
    # Whoever was away when the beginning was removed begins with the snapshot that it was sent.
    assert any(segment_name(0) not in _names(folder) for folder in folders.values())


def _names(folder: Path) -> set[str]:
    return {path.name for path in log_folder(folder).iterdir()}


def _assert_written(
    folders: Mapping[int, Path], later: MetadataImage, image: MetadataImage
) -> None:
    for folder in folders.values():
        assert content(image_in(folder)) == content(later)
        begun, *written = snapshots(folder)
        assert written[-1].end_offset > image.provenance.end_offset
        for snapshot_id in (begun, *written):
            replayed = image_in(folder, snapshot_id.end_offset)
            assert content(image_of(folder, snapshot_id)) == content(replayed)


@contextmanager
def _side(cluster: Cluster) -> Generator[Side]:
    cluster.await_true("all controllers are registered", lambda: is_whole(cluster), _PATIENCE_S)
    with connected(cluster.cluster_id, addresses(cluster)) as side:
        assert side is not None, "the active controller has gone"
        yield side
