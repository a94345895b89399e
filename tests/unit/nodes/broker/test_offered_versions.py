"""A broker offers what its controller can be handed, and its own answers whatever that is."""

from splitbrain.nodes.broker.forwarding import FORWARDED
from splitbrain.nodes.broker.offered_versions import offered_versions
from splitbrain.nodes.broker.serving import ANSWERED
from splitbrain.nodes.quorum.messages import ErrorCode
from splitbrain.nodes.wire.api_versions import ApiVersionsAnswer
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader
from splitbrain.nodes.wire.control_plane import TABLES
from splitbrain.nodes.wire.controller_apis import CONTROLLER_VERSIONS
from splitbrain.nodes.wire.messages import decode_answer, encode_api_versions
from tests.unit.nodes.broker.answered_images import image


def controller(*apis: tuple[int, int, int]) -> ApiVersionsAnswer:
    return ApiVersionsAnswer(error=ErrorCode.NONE, apis=apis, features=())


def offered(*apis: tuple[int, int, int]) -> dict[int, tuple[int, int]]:
    answer = offered_versions(image(), controller(*apis))
    return {key: (lowest, highest) for key, lowest, highest in answer.apis}


def test_without_a_controller_everything_is_offered() -> None:
    answer = offered_versions(image(), None)
    assert {key for key, _, _ in answer.apis} == {ApiKey.API_VERSIONS, *ANSWERED, *FORWARDED}
    assert answer.apis == tuple(sorted(answer.apis))


def test_what_the_controller_does_not_serve_is_not_offered() -> None:
    assert set(offered()) == {ApiKey.API_VERSIONS, *ANSWERED}


def test_versions_are_those_that_both_speak() -> None:
    create, delete = int(ApiKey.CREATE_TOPICS), int(ApiKey.DELETE_TOPICS)
    versions = offered((create, 0, 4), (delete, 6, 9), (int(ApiKey.METADATA), 3, 3))
    assert versions[create] == (2, 4)
    assert versions[delete] == (6, 6)
    assert versions[ApiKey.METADATA] == tuple(TABLES[ApiKey.METADATA].versions)
    assert create not in offered((create, 0, 1))


def test_with_a_controller_of_ours_nothing_is_missing() -> None:
    ours = [(int(key), own.lowest, own.highest) for key, own in CONTROLLER_VERSIONS.items()]
    whole = offered_versions(image(), None)
    assert {key: (lowest, highest) for key, lowest, highest in whole.apis} == offered(*ours)


def test_levels_are_those_of_the_image_and_every_version_can_be_sent() -> None:
    answer = offered_versions(image(), None)
    assert dict(answer.finalized) == {"metadata.version": 30}
    assert answer.finalized_offset == image().provenance.last_offset
    for version in range(5):
        header = RequestHeader(ApiKey.API_VERSIONS, version, 1, None)
        frame = encode_api_versions(header, answer)
        assert decode_answer(frame[4:], ApiKey.API_VERSIONS, version).correlation_id == 1
