"""UpdateFeatures, ListPartitionReassignments, and the register of handlers."""

import pytest

from splitbrain.nodes.controller.configs.features import update_features
from splitbrain.nodes.controller.partitions.list_reassignments import list_reassignments
from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.records import SupportedFeature
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.controllers import (
    FeatureToUpdate,
    UpdatedFeature,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from splitbrain.nodes.wire.families.partitions import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    PartitionUnderReassignment,
    TopicToList,
    TopicUnderReassignment,
)
from tests.unit.nodes.controller.clusters import (
    applied,
    broker,
    image_with,
    partition,
    topic,
    view_of,
)

A, B = "a0" * 16, "b0" * 16
SUPPORTED = (
    SupportedFeature("metadata.version", 7, 30),
    SupportedFeature("transaction.version", 0, 2),
    SupportedFeature("group.version", 1, 1),
)
IMAGE = image_with(
    [
        records.FeatureLevelRecord("transaction.version", 1),
        broker(1, features=SUPPORTED),
        records.RegisterControllerRecord(
            3, A, False, (), (SupportedFeature("share.version", 0, 0), *SUPPORTED)
        ),
    ]
)
UNABLE = "does not support this feature."
PREFIX = "The update failed for all features since the following feature had an error: "


def update(feature: str, level: int, upgrade_type: int = 1) -> FeatureToUpdate:
    return FeatureToUpdate(feature=feature, max_version_level=level, upgrade_type=upgrade_type)


@pytest.mark.parametrize(
    ("wanted", "written"),
    [
        (update("transaction.version", 2), records.FeatureLevelRecord("transaction.version", 2)),
        (update("transaction.version", 0, 2), records.FeatureLevelRecord("transaction.version", 0)),
        (update("transaction.version", 1, 3), records.FeatureLevelRecord("transaction.version", 1)),
        (update("metadata.version", 30), records.FeatureLevelRecord("metadata.version", 30)),
        (update("kraft.version", 0), records.NoOpRecord()),
    ],
)
def test_a_level_that_all_nodes_support_is_set(
    wanted: FeatureToUpdate, written: records.MetadataRecord
) -> None:
    for validate_only in (False, True):
        request = UpdateFeaturesRequest(feature_updates=(wanted,), validate_only=validate_only)
        decision = update_features(view_of(IMAGE), request, 2)
        assert decision.answer == UpdateFeaturesResponse(
            throttle_time_ms=0, error_code=0, error_message=None
        )
        assert decision.records == (() if validate_only else (written,))
        applied(IMAGE, decision)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (update("foo", 1), f"Local controller 3 {UNABLE}"),
        (update("foo", 0), "Feature foo not found."),
        (update("eligible.leader.replicas.version", 1), f"Local controller 3 {UNABLE}"),
        (update("kraft.version", 1), f"Local controller 3 {UNABLE}"),
        (update("metadata.version", 31), "Local controller 3 only supports versions 7-30"),
        (update("group.version", 0, 2), "Broker 1 only supports versions 1"),
        (update("streams.version", 1), f"Broker 1 {UNABLE}"),
        (update("share.version", 1), f"Broker 1 {UNABLE}"),
        (update("transaction.version", -1), "A feature version cannot be less than 0."),
        (
            update("transaction.version", 2, 0),
            "The controller does not support the given upgrade type.",
        ),
        (update("transaction.version", 2, 2), "Can't downgrade to a newer version."),
        (
            update("transaction.version", 0),
            (
                "Can't downgrade the version of this feature without setting the upgrade type to "
                "either safe or unsafe downgrade."
            ),
        ),
    ],
)
def test_a_level_is_refused_with_all_others(wanted: FeatureToUpdate, message: str) -> None:
    request = UpdateFeaturesRequest(feature_updates=(update("transaction.version", 2), wanted))
    decision = update_features(view_of(IMAGE), request, 1)
    assert decision.answer == UpdateFeaturesResponse(
        throttle_time_ms=0,
        error_code=ApiError.INVALID_UPDATE_VERSION,
        error_message=(
            f"{PREFIX}Invalid update version {wanted.max_version_level} for feature "
            f"{wanted.feature}. {message}"
        ),
    )
    assert decision.records == ()


@pytest.mark.parametrize(
    ("upgrade_type", "reason"),
    [
        (
            2,
            (
                "Refusing to perform the requested downgrade because it might delete metadata "
                "information."
            ),
        ),
        (3, "Unsafe metadata downgrade is not supported in this version."),
    ],
)
def test_the_metadata_version_never_goes_back(upgrade_type: int, reason: str) -> None:
    wanted = update("metadata.version", 29, upgrade_type)
    decision = update_features(view_of(IMAGE), UpdateFeaturesRequest(feature_updates=(wanted,)), 2)
    assert isinstance(decision.answer, UpdateFeaturesResponse)
    assert decision.answer.error_code == ApiError.INVALID_UPDATE_VERSION
    assert decision.answer.error_message == (
        f"{PREFIX}Unsupported metadata.version downgrade from 30 to 29. {reason}"
    )


def test_a_registered_controller_has_a_say() -> None:
    image = image_with([records.RegisterControllerRecord(3, A, False, (), SUPPORTED)])
    wanted = UpdateFeaturesRequest(feature_updates=(update("share.version", 1),))
    answer = update_features(view_of(image), wanted, 2).answer
    assert isinstance(answer, UpdateFeaturesResponse)
    assert str(answer.error_message).endswith("Controller 3 does not support this feature.")


def test_older_versions_are_answered_feature_by_feature() -> None:
    wanted = update("transaction.version", 2)
    request = UpdateFeaturesRequest(feature_updates=(wanted, wanted))
    answer = update_features(view_of(IMAGE), request, 1).answer
    assert isinstance(answer, UpdateFeaturesResponse)
    # As often as it was named.
    result = UpdatedFeature(feature="transaction.version", error_code=0, error_message="NONE")
    assert answer.results == (result, result)


MOVING = image_with(
    [
        *topic("a", A, (1, 2)),
        partition(A, 1, (1, 2, 3), adding_replicas=(3,), removing_replicas=(1,)),
        *topic("b", B, (1,)),
    ]
)
ANSWER = ListPartitionReassignmentsResponse(
    throttle_time_ms=0,
    error_code=0,
    error_message=None,
    topics=(
        TopicUnderReassignment(
            name="a",
            partitions=(
                PartitionUnderReassignment(
                    partition_index=1,
                    replicas=(1, 2, 3),
                    adding_replicas=(3,),
                    removing_replicas=(1,),
                ),
            ),
        ),
    ),
)


def test_partitions_on_the_move_are_listed() -> None:
    def listed(*topics: TopicToList) -> object:
        request = ListPartitionReassignmentsRequest(topics=topics)
        return list_reassignments(view_of(MOVING), request, 0).answer

    everything = ListPartitionReassignmentsRequest()
    assert list_reassignments(view_of(MOVING), everything, 0).answer == ANSWER
    assert listed(TopicToList(name="a", partition_indexes=(0, 1, 2, -1))) == ANSWER
    for name, partitions in (("a", (0, 5)), ("b", (0,)), ("x", (0,))):
        answer = listed(TopicToList(name=name, partition_indexes=partitions))
        assert isinstance(answer, ListPartitionReassignmentsResponse)
        assert answer.topics == ()
