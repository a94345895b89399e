"""Strategies for every message of the core, and what each version of an API can say of it."""

from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

from splitbrain.nodes.quorum import messages as core
from splitbrain.nodes.quorum.identifiers import (
    NO_DIRECTORY,
    NO_EPOCH,
    UNKNOWN_OFFSET,
    DirectoryId,
    Epoch,
    NodeId,
    Offset,
)
from splitbrain.nodes.quorum.messages import ErrorCode
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.wire.apis import SUPPORTED_VERSIONS, ApiKey
from splitbrain.nodes.wire.batches import encode_payloads, split_batches
from splitbrain.nodes.wire.messages import Endpoint

epochs = st.integers(-1, 2**31 - 1).map(Epoch)
node_ids = st.integers(0, 2**31 - 1).map(NodeId)
sizes = st.integers(0, 2**31 - 1)
directories = st.just(NO_DIRECTORY) | st.binary(min_size=16, max_size=16).map(
    lambda raw: DirectoryId(raw.hex())
)
snapshot_ids = st.builds(SnapshotId, sizes.map(lambda size: Offset(size << 32)), sizes.map(Epoch))
_BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    NodeId: node_ids,
    Epoch: epochs,
    Offset: st.integers(-1, 2**63 - 2),
    DirectoryId: directories,
    SnapshotId: snapshot_ids,
    int: sizes,
    str: st.text(max_size=24),
    bytes: st.binary(max_size=40),
    bool: st.booleans(),
    NoneType: st.none(),
    ErrorCode: st.sampled_from(ErrorCode),
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field of the core's messages."""
    if hint in _BY_TYPE:
        return _BY_TYPE[hint]
    arguments = get_args(hint)
    if get_origin(hint) is tuple and arguments[-1] is ...:
        return st.lists(values(arguments[0]), max_size=4).map(tuple)
    if get_origin(hint) is tuple:
        return st.tuples(*map(values, arguments))
    if arguments:
        return st.one_of(*map(values, arguments))
    return st.builds(hint, **{name: values(each) for name, each in get_type_hints(hint).items()})


requests: st.SearchStrategy[core.Request] = values(core.Request)


@st.composite
def fetch_answers(draw: st.DrawFn) -> core.FetchAnswer:
    position = draw(st.integers(0, 1000))
    records = b""
    for _ in range(draw(st.integers(0, 3))):
        payloads = draw(
            st.lists(st.tuples(st.none(), st.binary(max_size=20)), min_size=1, max_size=4)
        )
        records += encode_payloads(Offset(position), Epoch(4), 9, payloads)
        position += len(payloads)
    answer: core.FetchAnswer = draw(values(core.FetchAnswer))
    diverging = draw(st.none() | st.tuples(sizes.map(Epoch), sizes.map(Offset)))
    return msgspec.structs.replace(
        answer, diverging=diverging, batches=split_batches(records), records=records
    )


answers: st.SearchStrategy[core.Answer] = st.one_of(
    fetch_answers(),
    *(values(kind) for kind in get_args(core.Answer) if kind is not core.FetchAnswer),
)
endpoint_maps = st.dictionaries(
    node_ids, st.builds(Endpoint, st.text(max_size=12), st.integers(0, 65535)), max_size=3
)
ANSWER_KEYS = {
    core.VoteAnswer: ApiKey.VOTE,
    core.BeginQuorumEpochAnswer: ApiKey.BEGIN_QUORUM_EPOCH,
    core.EndQuorumEpochAnswer: ApiKey.END_QUORUM_EPOCH,
    core.FetchAnswer: ApiKey.FETCH,
    core.FetchSnapshotAnswer: ApiKey.FETCH_SNAPSHOT,
    core.DescribeQuorumAnswer: ApiKey.DESCRIBE_QUORUM,
}


def versions_of(api_key: ApiKey) -> list[int]:
    lowest, highest = SUPPORTED_VERSIONS[api_key]
    return list(range(lowest, highest + 1))


def request_as_carried(request: core.Request, version: int) -> core.Request:
    """Return the part of a request that a version of the API can say."""
    if isinstance(request, core.VoteRequest):
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
    if isinstance(request, core.FetchSnapshotRequest) and version < 1:
        request = msgspec.structs.replace(request, replica_directory_id=NO_DIRECTORY)
    if isinstance(request, core.FetchRequest):
        last_epoch = _carried_epoch(request.last_fetched_epoch, request.fetch_offset)
        request = msgspec.structs.replace(request, last_fetched_epoch=last_epoch)
    if isinstance(request, core.FetchRequest) and version < 18:
        request = msgspec.structs.replace(request, high_watermark=UNKNOWN_OFFSET)
    return request


def _carried_epoch(epoch: Epoch, end_offset: Offset) -> Epoch:
    """None where nothing comes before, and else never below 0."""
    carried_epoch = max(epoch, 0)
    return NO_EPOCH if carried_epoch == end_offset == 0 else Epoch(carried_epoch)


def answer_as_carried(answer: core.Answer, version: int) -> core.Answer:
    """Return the part of an answer that a version of the API can say."""
    if not isinstance(answer, core.DescribeQuorumAnswer):
        return answer

    def carried(entry: core.ReplicaProgress) -> core.ReplicaProgress:
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
