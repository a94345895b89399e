"""Two of Kafka's controllers and one of ours are one quorum, whoever leads and whoever is away.

Kafka's are strict: one that is told a high watermark or a record that cannot be ends itself. They
miss a leader sooner than ours does: who has not missed it grants no pre-vote, so whoever misses it
last is elected first.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from contracts.system import PEER_PORT
from nodes.metadata.records import ConfigRecord
from nodes.metadata.serde import decode_record
from nodes.quorum.messages import DescribeQuorumAnswer, ErrorCode
from nodes.storage.reading import read_committed
from nodes.wire.batches import decode_batch
from nodes.wire.families.configs import (
    ConfigChange,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ResourceToChange,
)
from tests.referee.cluster import Cluster, deployed
from tests.referee.controllers import (
    KAFKA_DATA,
    OWN_DATA,
    KafkaControllers,
    MixedControllers,
    OwnControllers,
)
from tests.referee.folders import content, image_in
from tests.referee.log_bytes import batches, overlap, split
from tests.referee.wire_client import Connection, DeposedError, Follower

pytestmark = [pytest.mark.containers, pytest.mark.nightly, pytest.mark.timeout(600)]

_PATIENCE_S = 90.0
_ROUNDS = 8
_WRITES = 30
_BROKER = 4
_CONFIG = "log.retention.ms"
_CONTROLLERS = MixedControllers(
    kafka=KafkaControllers(settings={"controller.quorum.fetch.timeout.ms": "4000"}),
    own=OwnControllers(
        settings={
            "controller.quorum.fetch.timeout.ms": "8000",
            "controller.quorum.election.timeout.ms": "300",
        }
    ),
)
_OWN = _CONTROLLERS.own_id
#: What a controller of Kafka says when it meets what cannot be.
_FAULTS = ("fatal fault", "FATAL", "IllegalStateException", "IllegalArgumentException")


class MixedQuorum:
    """The quorum under test, with numbered writes."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.ids = [int(voter.node_id) for voter in cluster.voters]
        self._numbers: Iterator[int] = count(1)
        self.acknowledged: list[int] = []

    def connection(self, node_id: int) -> Connection:
        address = self.cluster.address(node_id, PEER_PORT)
        return Connection(address.host, address.port)

    def described(self, node_id: int) -> DescribeQuorumAnswer | None:
        """The quorum as a node describes it that leads; None if it does not."""
        try:
            with self.connection(node_id) as connection:
                found = connection.describe_quorum()
        except OSError:
            return None
        leads = found.error is ErrorCode.NONE and found.leader_id == node_id
        return found if leads else None

    def await_leader(self, among: list[int]) -> int:
        """Who of these leads and commits."""
        found: list[int] = []

        def is_led() -> bool:
            found[:] = [each for each in among if self.described(each) and self.write(each)]
            return bool(found)

        self.cluster.await_true(f"one of {among} leads", is_led, _PATIENCE_S)
        return found[0]

    def write(self, leader: int) -> bool:
        """Have the next number written; whether the leader says that it is committed."""
        number = next(self._numbers)
        try:
            with self.connection(leader) as connection:
                answer = connection.ask(numbered(number), 1)
        except OSError:
            return False
        assert isinstance(answer, IncrementalAlterConfigsResponse)
        is_done = all(each.error_code == 0 for each in answer.responses)
        if is_done:
            self.acknowledged.append(number)
        return is_done

    def write_many(self, leader: int) -> None:
        for _ in range(_WRITES):
            assert self.write(leader), f"node {leader} lost its lead"

    def make_lead(self, wanted: set[int]) -> int:
        """Freeze whoever leads beside these until one of them does; all run then."""
        for _ in range(_ROUNDS):
            leader = self.await_leader(self.ids)
            if leader in wanted:
                self.await_level(leader)
                return leader
            self.cluster.pause(leader)
            self.await_leader([each for each in self.ids if each != leader])
            self.cluster.resume(leader)
        raise AssertionError(f"none of {wanted} leads in {_ROUNDS} rounds\n{self.cluster.tails()}")

    def await_level(self, leader: int) -> None:
        """Return when every voter has the whole log of this leader, committed."""

        def is_level() -> bool:
            found = self.described(leader)
            if found is None:
                return False
            return {each.end_offset for each in found.voters} == {found.high_watermark}

        self.cluster.await_true(f"all have the log of {leader}", is_level, _PATIENCE_S)

    def tail(self, leader: int) -> dict[int, bytes]:
        """Batches that a leader has and that are not committed."""
        found = self.described(leader)
        if found is None:
            return {}
        with self.connection(leader) as connection:
            follower = Follower(connection, self.cluster.cluster_id, found.epoch)
            try:
                follower.image()
                read = split(follower.ahead())
            except DeposedError:
                return {}
        return {offset: raw for offset, raw in read.items() if offset >= found.high_watermark}

    def end(self) -> dict[int, dict[int, bytes]]:
        """Stop all once they are level and compare what they hold; each one's log."""
        leader = self.await_leader(self.ids)
        self.await_level(leader)
        for each in self.ids:
            self.cluster.kill(each)
        for each in set(self.ids) - {_OWN}:
            log = self.cluster.log(each)
            assert not [word for word in _FAULTS if word in log], self.cluster.tails()
        folders = {each: self._folder(each) for each in self.ids}
        logs = {each: dict(batches(folder)) for each, folder in folders.items()}
        for each in self.ids:
            assert overlap(logs[_OWN], logs[each]) > len(self.acknowledged)
            assert set(self.acknowledged) <= numbers_in(folders[each])
        images = [content(image_in(folder)) for folder in folders.values()]
        assert all(image == images[0] for image in images)
        return logs

    def _folder(self, node_id: int) -> Path:
        data = OWN_DATA if node_id == _OWN else KAFKA_DATA
        return self.cluster.collect_data(node_id) / data


def numbered(number: int) -> IncrementalAlterConfigsRequest:
    change = ConfigChange(name=_CONFIG, config_operation=0, value=str(number))
    resource = ResourceToChange(resource_type=_BROKER, resource_name="", configs=(change,))
    return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)


def numbers_in(folder: Path) -> set[int]:
    """All that were written, in a folder's log."""
    records = (
        decode_record(each.value or b"") for each in read_committed(folder) if not each.is_control
    )
    return {int(each.value or 0) for each in records if isinstance(each, ConfigRecord)}


def says(raw: bytes, number: int) -> bool:
    """Whether a batch of the log writes this number."""
    batch = decode_batch(raw)
    if batch.is_control:
        return False
    records = (decode_record(each.value or b"") for each in batch.records)
    return any(isinstance(each, ConfigRecord) and each.value == str(number) for each in records)


@contextmanager
def mixed(run_folder: Path) -> Generator[MixedQuorum]:
    with deployed(run_folder, _CONTROLLERS, brokers=0) as cluster:
        yield MixedQuorum(cluster)


def test_ours_follows_one_of_kafkas_byte_for_byte(tmp_path: Path) -> None:
    with mixed(tmp_path / "run") as quorum:
        leader = quorum.make_lead({1, 2})
        quorum.write_many(leader)
        quorum.cluster.kill(_OWN)
        quorum.write_many(leader)
        quorum.cluster.start(_OWN)
        quorum.await_level(leader)
        quorum.end()


def test_ours_is_the_voter_that_decides(tmp_path: Path) -> None:
    with mixed(tmp_path / "run") as quorum:
        leader = quorum.make_lead({1, 2})
        other = 3 - leader
        quorum.cluster.kill(other)
        quorum.write_many(leader)
        quorum.cluster.start(other)
        quorum.await_level(leader)
        quorum.cluster.kill(leader)
        next_leader = quorum.await_leader([other, _OWN])
        quorum.write_many(next_leader)
        quorum.cluster.start(leader)
        quorum.end()


def test_ours_leads_kafkas(tmp_path: Path) -> None:
    with mixed(tmp_path / "run") as quorum:
        quorum.make_lead({_OWN})
        quorum.write_many(_OWN)
        for away in (1, 2):
            quorum.cluster.kill(away)
            quorum.write_many(_OWN)
            quorum.cluster.start(away)
            quorum.await_level(_OWN)
        quorum.end()


@pytest.mark.parametrize(
    ("isolated", "successors"),
    [
        pytest.param({_OWN}, {1, 2}, id="of-ours-by-kafkas"),
        pytest.param({1, 2}, {_OWN}, id="of-kafkas-by-ours"),
    ],
)
def test_what_an_isolated_leader_alone_has_is_truncated(
    tmp_path: Path, isolated: set[int], successors: set[int]
) -> None:
    with mixed(tmp_path / "run") as quorum:
        for _ in range(_ROUNDS):
            leader = quorum.make_lead(isolated)
            lost, successor = _succeeded(quorum, leader)
            if lost and successor in successors:
                break
        else:
            raise AssertionError(f"none of {successors} came to lead in {_ROUNDS} rounds")
        logs = quorum.end()
        for log in logs.values():
            assert all(log.get(offset) != raw for offset, raw in lost.items())


def _succeeded(quorum: MixedQuorum, leader: int) -> tuple[dict[int, bytes], int]:
    """Have a leader write alone until others have another; what it wrote, and who that is.

    Frozen followers would still take what the leader sends them, once they go on.
    """
    quorum.cluster.isolate(leader)
    # It leads for a while yet, until it misses their fetches.
    with quorum.connection(leader) as connection:
        connection.tell(numbered(0), 1)
        lost: dict[int, bytes] = {}
        while not lost and quorum.described(leader) is not None:
            # What else it has more may be at others: they took it, and could not tell any more.
            tail = quorum.tail(leader)
            lost = {offset: raw for offset, raw in tail.items() if says(raw, 0)}
        successor = quorum.await_leader([each for each in quorum.ids if each != leader])
    quorum.write_many(successor)
    quorum.cluster.heal()
    quorum.await_level(quorum.await_leader(quorum.ids))
    return lost, successor
