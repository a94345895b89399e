"""A broker offers what its controller can be handed, and its own answers whatever that is."""

from splitbrain.nodes.broker.forwarding import FORWARDED
from splitbrain.nodes.broker.serving import ANSWERED, offered_versions
from splitbrain.nodes.wire.api_versions import served_versions
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader, VersionRange
from splitbrain.nodes.wire.calls import TABLES
from splitbrain.nodes.wire.controller_apis import CONTROLLER_VERSIONS
from splitbrain.nodes.wire.messages import decode_answer, encode_api_versions
from tests.unit.nodes.broker.answered_images import image


def offered(controller: dict[ApiKey, VersionRange]) -> dict[int, VersionRange]:
    return offered_versions(image(), served_versions(controller, {})).versions()


def test_without_a_controller_everything_is_offered() -> None:
    answer = offered_versions(image(), None)
    versions = answer.versions()
    assert set(versions) == {ApiKey.API_VERSIONS, *ANSWERED, *FORWARDED}
    assert list(versions) == sorted(versions)


def test_what_the_controller_does_not_serve_is_not_offered() -> None:
    assert set(offered({})) == {ApiKey.API_VERSIONS, *ANSWERED}


def test_versions_are_those_that_both_speak() -> None:
    create, delete, metadata = ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.METADATA
    theirs = {create: VersionRange(0, 4), delete: VersionRange(6, 9), metadata: VersionRange(3, 3)}
    versions = offered(theirs)
    assert versions[create] == (2, 4)
    assert versions[delete] == (6, 6)
    assert versions[metadata] == TABLES[metadata].versions
    assert create not in offered({create: VersionRange(0, 1)})


def test_with_a_controller_of_ours_nothing_is_missing() -> None:
    whole = offered_versions(image(), None)
    assert whole.versions() == offered(dict(CONTROLLER_VERSIONS))


def test_levels_are_those_of_the_image_and_every_version_can_be_sent() -> None:
    answer = offered_versions(image(), None)
    levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    assert levels == {"metadata.version": 30}
    assert answer.finalized_features_epoch == image().provenance.last_offset
    for version in range(5):
        header = RequestHeader(ApiKey.API_VERSIONS, version, 1, None)
        frame = encode_api_versions(header, answer)
        assert decode_answer(frame[4:], ApiKey.API_VERSIONS, version).correlation_id == 1
