"""Two of Kafka's controllers and one of ours in one quorum, with numbered writes.

Kafka's miss a leader sooner than ours does: who has not missed it grants no pre-vote, so whoever
misses it last is elected first.
"""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Final

from splitbrain.contracts.system import PEER_PORT
from splitbrain.nodes.controller.configs.config_validation import ResourceType
from splitbrain.nodes.metadata.records import ConfigRecord, MetadataRecord
from splitbrain.nodes.metadata.serde import decode_record
from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.quorum.messages import DescribeQuorumAnswer, ErrorCode
from splitbrain.nodes.storage.reading import log_start, read_committed
from splitbrain.nodes.wire.batches import decode_batch
from splitbrain.nodes.wire.families.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
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
from tests.referee.one_config import set_config
from tests.referee.wire_client import Connection, DeposedError, Follower

PATIENCE_S: Final = 90.0
ROUNDS: Final = 8
#: Kafka's look once a minute what they may forget.
_FORGETTING_S: Final = 180.0
_WRITES: Final = 30
#: Of all brokers; whatever it is, they keep their records.
_CONFIG: Final = "log.cleaner.delete.retention.ms"
CONTROLLERS: Final = MixedControllers(
    kafka=KafkaControllers(settings={"controller.quorum.fetch.timeout.ms": "4000"}),
    own=OwnControllers(
        settings={
            "controller.quorum.fetch.timeout.ms": "8000",
            "controller.quorum.election.timeout.ms": "300",
        }
    ),
)
OWN_ID: Final = CONTROLLERS.own_id
KAFKA_IDS: Final = frozenset({1, 2})
#: Words of a Kafka controller that meets an impossible state.
_FAULTS: Final = ("fatal fault", "FATAL", "IllegalStateException", "IllegalArgumentException")


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
        """Return the one of these that leads and commits."""
        found: list[int] = []

        def is_led() -> bool:
            found[:] = [each for each in among if self.described(each) and self.write(each)]
            return bool(found)

        self.cluster.await_true(f"one of {among} leads", is_led, PATIENCE_S)
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
        for _ in range(ROUNDS):
            leader = self.await_leader(self.ids)
            if leader in wanted:
                self.await_level(leader)
                return leader
            self.cluster.pause(leader)
            self.await_leader([each for each in self.ids if each != leader])
            self.cluster.resume(leader)
        raise AssertionError(f"none of {wanted} leads in {ROUNDS} rounds\n{self.cluster.tails()}")

    def await_level(self, leader: int) -> None:
        """Return when every voter has the whole log of this leader, committed."""

        def is_level() -> bool:
            found = self.described(leader)
            if found is None:
                return False
            return {each.end_offset for each in found.voters} == {found.high_watermark}

        self.cluster.await_true(f"all have the log of {leader}", is_level, PATIENCE_S)

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

    def position(self, node_id: int, leader: int) -> tuple[Offset, Epoch]:
        """How far the leader knows a voter's log to go, and in which epoch."""
        found = self.described(leader)
        assert found is not None, f"node {leader} lost its lead"
        (offset,) = (each.end_offset for each in found.voters if each.node_id == node_id)
        return offset, found.epoch

    def write_until_forgotten(self, leader: int, position: tuple[Offset, Epoch]) -> None:
        """Write until the leader has nothing but snapshots for a follower with this position."""

        def is_forgotten() -> bool:
            self.write_many(leader)
            with self.connection(leader) as connection:
                follower = Follower(connection, self.cluster.cluster_id, position[1])
                return follower.is_too_late(*position)

        self.cluster.await_true("the log's beginning is removed", is_forgotten, _FORGETTING_S)

    def end(self) -> dict[int, dict[int, bytes]]:
        """Stop all once they are level and compare what they hold; each one's log."""
        folders = self.stop()
        logs = {each: dict(batches(folder)) for each, folder in folders.items()}
        for each in self.ids:
            assert overlap(logs[OWN_ID], logs[each]) > len(self.acknowledged)
            assert set(self.acknowledged) <= numbers_in(folders[each])
        return logs

    def end_forgetful(self) -> dict[int, Path]:
        """As ``end``, where logs have lost their beginnings; each one's folder."""
        folders = self.stop()
        first = max(log_start(folder).end_offset for folder in folders.values())
        logs = {each: after(first, batches(folder)) for each, folder in folders.items()}
        for each in self.ids:
            assert overlap(logs[OWN_ID], logs[each]) > 0
        return folders

    def stop(self) -> dict[int, Path]:
        """Stop all once they are level, and look that their images are equal; the folders."""
        leader = self.await_leader(self.ids)
        self.await_level(leader)
        for each in self.ids:
            self.cluster.kill(each)
        for each in set(self.ids) - {OWN_ID}:
            log = self.cluster.log(each)
            assert not [word for word in _FAULTS if word in log], self.cluster.tails()
        folders = {each: self._folder(each) for each in self.ids}
        images = [content(image_in(folder)) for folder in folders.values()]
        assert all(image == images[0] for image in images)
        return folders

    def _folder(self, node_id: int) -> Path:
        data = OWN_DATA if node_id == OWN_ID else KAFKA_DATA
        return self.cluster.collect_data(node_id) / data


def numbered(number: int) -> IncrementalAlterConfigsRequest:
    return set_config(ResourceType.BROKER, "", _CONFIG, str(number))


def after(first: int, log: Mapping[int, bytes]) -> dict[int, bytes]:
    return {offset: raw for offset, raw in log.items() if offset >= first}


def numbers_in(folder: Path) -> set[int]:
    records = (
        decode_record(each.value or b"") for each in read_committed(folder) if not each.is_control
    )
    written = (_written(each) for each in records)
    return {int(each) for each in written if each is not None}


def _written(record: MetadataRecord) -> str | None:
    """The number that a record writes, as it has it; topics have configs too."""
    if isinstance(record, ConfigRecord) and record.name == _CONFIG:
        return record.value
    return None


def says(raw: bytes, number: int) -> bool:
    batch = decode_batch(raw)
    if batch.is_control:
        return False
    records = (decode_record(each.value or b"") for each in batch.records)
    return any(_written(each) == str(number) for each in records)


@contextmanager
def mixed(
    run_folder: Path, controllers: MixedControllers = CONTROLLERS, *, brokers: int = 0
) -> Generator[MixedQuorum]:
    with deployed(run_folder, controllers, brokers=brokers) as cluster:
        yield MixedQuorum(cluster)


def further(
    *, kafka: Mapping[str, str] | None = None, own: Mapping[str, str] | None = None
) -> MixedControllers:
    kafkas, ours = CONTROLLERS.kafka, CONTROLLERS.own
    return replace(
        CONTROLLERS,
        kafka=replace(kafkas, settings={**kafkas.settings, **(kafka or {})}),
        own=replace(ours, settings={**ours.settings, **(own or {})}),
    )
