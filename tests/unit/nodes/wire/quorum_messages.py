"""Strategies for every message of the core, and what each version of an API can say of it."""

import msgspec
from hypothesis import strategies as st

from splitbrain.nodes.quorum.identifiers import (
    NO_DIRECTORY,
    NO_EPOCH,
    UNKNOWN_OFFSET,
    DirectoryId,
    Epoch,
    NodeId,
    Offset,
)
from splitbrain.nodes.quorum.messages import (
    Answer,
    BeginQuorumEpochAnswer,
    BeginQuorumEpochRequest,
    DescribeQuorumAnswer,
    DescribeQuorumRequest,
    EndQuorumEpochAnswer,
    EndQuorumEpochRequest,
    ErrorCode,
    FetchAnswer,
    FetchRequest,
    FetchSnapshotAnswer,
    FetchSnapshotRequest,
    ReplicaProgress,
    Request,
    VoteAnswer,
    VoteRequest,
)
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.wire.apis import SUPPORTED_VERSIONS, ApiKey
from splitbrain.nodes.wire.batches import encode_payloads, split_batches
from splitbrain.nodes.wire.messages import Endpoint

node_ids = st.integers(0, 2**31 - 1).map(NodeId)
leaders = st.none() | node_ids
epochs = st.integers(-1, 2**31 - 1).map(Epoch)
offsets = st.integers(-1, 2**63 - 2).map(Offset)
sizes = st.integers(0, 2**31 - 1)
directories = st.just(NO_DIRECTORY) | st.binary(min_size=16, max_size=16).map(
    lambda raw: DirectoryId(raw.hex())
)
clusters = st.none() | st.text(max_size=24)
errors = st.sampled_from(ErrorCode)
snapshot_ids = st.builds(
    SnapshotId, st.integers(0, 2**63 - 1).map(Offset), st.integers(0, 2**31 - 1).map(Epoch)
)
voter_keys = st.lists(st.tuples(node_ids, directories), max_size=4).map(tuple)

requests = st.one_of(
    st.builds(
        VoteRequest,
        cluster_id=clusters,
        voter_id=node_ids,
        voter_directory_id=directories,
        epoch=epochs,
        candidate_id=node_ids,
        candidate_directory_id=directories,
        last_epoch=epochs,
        end_offset=offsets,
        pre_vote=st.booleans(),
    ),
    st.builds(
        BeginQuorumEpochRequest,
        cluster_id=clusters,
        voter_id=node_ids,
        voter_directory_id=directories,
        leader_id=node_ids,
        epoch=epochs,
    ),
    st.builds(
        EndQuorumEpochRequest,
        cluster_id=clusters,
        leader_id=node_ids,
        epoch=epochs,
        preferred=voter_keys,
    ),
    st.builds(
        FetchRequest,
        cluster_id=clusters,
        replica_id=node_ids,
        replica_directory_id=directories,
        epoch=epochs,
        fetch_offset=offsets,
        last_fetched_epoch=epochs,
        high_watermark=offsets,
        max_wait_ms=sizes,
        max_bytes=sizes,
    ),
    st.builds(
        FetchSnapshotRequest,
        cluster_id=clusters,
        replica_id=node_ids,
        replica_directory_id=directories,
        epoch=epochs,
        snapshot_id=snapshot_ids,
        position=st.integers(0, 2**63 - 1),
        max_bytes=sizes,
    ),
    st.just(DescribeQuorumRequest()),
)


@st.composite
def fetch_answers(draw: st.DrawFn) -> FetchAnswer:
    position = draw(st.integers(0, 1000))
    records = b""
    for _ in range(draw(st.integers(0, 3))):
        payloads = draw(
            st.lists(st.tuples(st.none(), st.binary(max_size=20)), min_size=1, max_size=4)
        )
        records += encode_payloads(Offset(position), Epoch(4), 9, payloads)
        position += len(payloads)
    diverging = st.tuples(
        st.integers(0, 2**31 - 1).map(Epoch), st.integers(0, 2**63 - 1).map(Offset)
    )
    return FetchAnswer(
        error=draw(errors),
        leader_id=draw(leaders),
        epoch=draw(epochs),
        high_watermark=draw(offsets),
        log_start_offset=draw(offsets),
        diverging=draw(st.none() | diverging),
        batches=split_batches(records),
        records=records,
        snapshot_id=draw(st.none() | snapshot_ids),
    )


progress = st.builds(
    ReplicaProgress,
    node_id=node_ids,
    directory_id=directories,
    end_offset=offsets,
    last_fetch_ms=offsets,
    last_caught_up_ms=offsets,
)
progresses = st.lists(progress, max_size=4).map(tuple)
answers = st.one_of(
    st.builds(VoteAnswer, error=errors, leader_id=leaders, epoch=epochs, granted=st.booleans()),
    st.builds(BeginQuorumEpochAnswer, error=errors, leader_id=leaders, epoch=epochs),
    st.builds(EndQuorumEpochAnswer, error=errors, leader_id=leaders, epoch=epochs),
    fetch_answers(),
    st.builds(
        FetchSnapshotAnswer,
        error=errors,
        leader_id=leaders,
        epoch=epochs,
        snapshot_id=st.none() | snapshot_ids,
        size_bytes=st.integers(0, 2**63 - 1),
        position=st.integers(0, 2**63 - 1),
        data=st.binary(max_size=40),
    ),
    st.builds(
        DescribeQuorumAnswer,
        error=errors,
        leader_id=leaders,
        epoch=epochs,
        high_watermark=offsets,
        voters=progresses,
        observers=progresses,
    ),
)
endpoint_maps = st.dictionaries(
    node_ids, st.builds(Endpoint, st.text(max_size=12), st.integers(0, 65535)), max_size=3
)
ANSWER_KEYS = {
    VoteAnswer: ApiKey.VOTE,
    BeginQuorumEpochAnswer: ApiKey.BEGIN_QUORUM_EPOCH,
    EndQuorumEpochAnswer: ApiKey.END_QUORUM_EPOCH,
    FetchAnswer: ApiKey.FETCH,
    FetchSnapshotAnswer: ApiKey.FETCH_SNAPSHOT,
    DescribeQuorumAnswer: ApiKey.DESCRIBE_QUORUM,
}


def versions_of(api_key: ApiKey) -> list[int]:
    lowest, highest = SUPPORTED_VERSIONS[api_key]
    return list(range(lowest, highest + 1))


def request_as_carried(request: Request, version: int) -> Request:
    """What a version of the API can say of a request."""
    if isinstance(request, VoteRequest):
        last_epoch = _carried_epoch(request.last_epoch, request.end_offset)
        request = msgspec.structs.replace(request, last_epoch=last_epoch)
        if version < 2:
            request = msgspec.structs.replace(request, pre_vote=False)
        if version < 1:
            request = msgspec.structs.replace(
                request,
                voter_id=NodeId(-1),
                voter_directory_id=NO_DIRECTORY,
                candidate_directory_id=NO_DIRECTORY,
            )
    if isinstance(request, FetchSnapshotRequest) and version < 1:
        request = msgspec.structs.replace(request, replica_directory_id=NO_DIRECTORY)
    if isinstance(request, FetchRequest):
        last_epoch = _carried_epoch(request.last_fetched_epoch, request.fetch_offset)
        request = msgspec.structs.replace(request, last_fetched_epoch=last_epoch)
    if isinstance(request, FetchRequest) and version < 18:
        request = msgspec.structs.replace(request, high_watermark=UNKNOWN_OFFSET)
    return request


def _carried_epoch(epoch: Epoch, end_offset: Offset) -> Epoch:
    """None where nothing comes before, and else never below 0."""
    told = max(epoch, 0)
    return NO_EPOCH if told == end_offset == 0 else Epoch(told)


def answer_as_carried(answer: Answer, version: int) -> Answer:
    """What a version of the API can say of an answer."""
    if not isinstance(answer, DescribeQuorumAnswer):
        return answer

    def carried(entry: ReplicaProgress) -> ReplicaProgress:
        if version < 2:
            entry = msgspec.structs.replace(entry, directory_id=NO_DIRECTORY)
        if version < 1:
            entry = msgspec.structs.replace(entry, last_fetch_ms=-1, last_caught_up_ms=-1)
        return entry

    return msgspec.structs.replace(
        answer,
        voters=tuple(carried(entry) for entry in answer.voters),
        observers=tuple(carried(entry) for entry in answer.observers),
    )


def payload_of(framed: bytes) -> bytes:
    assert int.from_bytes(framed[:4], "big") == len(framed) - 4
    return framed[4:]
