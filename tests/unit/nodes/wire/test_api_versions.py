"""Served versions of a node, and the version chosen from a peer's."""

import struct
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.quorum import messages as core
from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.messages import ErrorCode
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.transport.kafka_codec import KafkaCodec
from splitbrain.nodes.wire.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    choose_version,
    own_versions,
    served_versions,
    unsupported_version,
)
from splitbrain.nodes.wire.apis import SUPPORTED_VERSIONS, ApiKey, RequestHeader, VersionRange
from splitbrain.nodes.wire.calls import TABLES, ReceivedCall
from splitbrain.nodes.wire.controller_apis import (
    CONTROLLER_FEATURES,
    CONTROLLER_VERSIONS,
    PINNED_LEVELS,
    advertised_versions,
)
from splitbrain.nodes.wire.errors import NoCommonVersionError
from splitbrain.nodes.wire.messages import (
    api_key_of,
    decode_answer,
    encode_api_versions,
    encode_request,
)
from tests.unit.nodes.quorum.replicas import fetch_request, vote_request

SNAPSHOT = SnapshotId(Offset(9), Epoch(0))
ASKED: dict[ApiKey, core.Request | ApiVersionsRequest] = {
    api_key_of(request): request
    for request in (
        ApiVersionsRequest(),
        vote_request(),
        core.BeginQuorumEpochRequest(None, NodeId(2), NO_DIRECTORY, NodeId(1), Epoch(3)),
        core.EndQuorumEpochRequest(None, NodeId(1), Epoch(3), ()),
        fetch_request(),
        core.FetchSnapshotRequest(None, NodeId(1), NO_DIRECTORY, Epoch(0), SNAPSHOT, 0, 1),
        core.DescribeQuorumRequest(),
    )
}


def test_nothing_is_advertised_that_no_handler_answers() -> None:
    codec = KafkaCodec(NodeId(1), ())
    for key, (lowest, highest) in own_versions().versions().items():
        for version in range(lowest, highest + 1):
            request = ASKED[ApiKey(key)]
            taken = codec.decode_request(encode_request(request, 5, None, version=version)[4:])
            if isinstance(request, ApiVersionsRequest):
                # Answered on the spot.
                assert isinstance(taken, bytes)
                assert struct.unpack_from(">ih", taken, 4) == (5, ErrorCode.NONE)
            else:
                # Handed to the replica, which takes every kind of request.
                assert isinstance(taken, ReceivedCall)
                assert type(taken.message) is type(request)
                assert type(request) in get_args(core.Request)


def test_a_controller_advertises_what_it_has_handlers_for_and_nothing_else() -> None:
    handled = {ApiKey.VOTE, ApiKey.CREATE_TOPICS}
    assert advertised_versions(handled) == {
        ApiKey.CREATE_TOPICS: VersionRange(2, 7),
        ApiKey.VOTE: VersionRange(0, 2),
    }
    with pytest.raises(ValueError, match="a controller does not serve METADATA"):
        advertised_versions({ApiKey.METADATA})


def test_every_row_of_the_controller_can_be_read_and_written() -> None:
    for api_key, versions in CONTROLLER_VERSIONS.items():
        assert TABLES[api_key].versions == versions


def test_every_pinned_level_is_one_that_is_supported() -> None:
    assert PINNED_LEVELS.keys() == CONTROLLER_FEATURES.keys()
    for name, level in PINNED_LEVELS.items():
        assert level in CONTROLLER_FEATURES[name]


@pytest.mark.parametrize("version", range(5))
def test_features_come_back_as_far_as_a_version_tells_them(version: int) -> None:
    serves = served_versions(CONTROLLER_VERSIONS, CONTROLLER_FEATURES, PINNED_LEVELS, 44)
    header = RequestHeader(ApiKey.API_VERSIONS, version, 5, None)

    def answered(serves: ApiVersionsResponse | None) -> ApiVersionsResponse:
        framed = encode_api_versions(header, serves)
        answer = decode_answer(framed[4:], ApiKey.API_VERSIONS, version).message
        assert isinstance(answer, ApiVersionsResponse)
        return answer

    own, answer = answered(None), answered(serves)
    assert own.api_keys == own_versions().api_keys
    # kraft.version starts at level 0, which only version 4 may tell.
    assert own.supported_features == (own_versions().supported_features if version == 4 else ())
    assert answer.api_keys == serves.api_keys
    if version < 3:
        assert answer == ApiVersionsResponse(error_code=0, api_keys=serves.api_keys)
        return
    names = {feature.name for feature in answer.supported_features}
    # Before version 4 a feature whose lowest level is 0 goes untold.
    assert names == (set(CONTROLLER_FEATURES) if version == 4 else {"metadata.version"})
    # Level 0 means that the cluster does not have the feature.
    levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    assert levels == {name: level for name, level in PINNED_LEVELS.items() if level}
    assert answer.finalized_features_epoch == 44


@pytest.mark.parametrize("version", range(5))
def test_a_refused_version_is_understood_whatever_was_asked(version: int) -> None:
    framed = encode_api_versions(RequestHeader(ApiKey.API_VERSIONS, 9, 31, "new"))
    answer = decode_answer(framed[4:], ApiKey.API_VERSIONS, version).message
    assert answer == unsupported_version()


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_the_highest_version_that_both_speak_is_chosen(
    own_lowest: int, own_highest: int, lowest: int, highest: int
) -> None:
    own = VersionRange(own_lowest, own_highest)
    theirs = {ApiKey.VOTE: VersionRange(0, 9), ApiKey.FETCH: VersionRange(lowest, highest)}
    peer = served_versions(theirs, {})
    shared = [version for version in range(21) if version in own and lowest <= version <= highest]
    if shared:
        assert choose_version(peer, ApiKey.FETCH, own) == max(shared)
    else:
        with pytest.raises(NoCommonVersionError):
            choose_version(peer, ApiKey.FETCH, own)


def test_what_is_not_shared_is_told_by_name() -> None:
    peer = served_versions({ApiKey.FETCH: VersionRange(4, 12)}, {})
    own = SUPPORTED_VERSIONS[ApiKey.FETCH]
    with pytest.raises(
        NoCommonVersionError,
        match="the peer serves FETCH in versions 4 to 12, this node speaks versions 17 to 18",
    ):
        choose_version(peer, ApiKey.FETCH, own)
    with pytest.raises(NoCommonVersionError, match="serves VOTE not at all"):
        choose_version(peer, ApiKey.VOTE, SUPPORTED_VERSIONS[ApiKey.VOTE])
