"""UpdateFeatures: levels of features, all that are asked for or none.

Ours supports what Kafka 4.3.1's controllers support, except what would ask more of it than it
does: eligible leader replicas, and dynamic voters (``kraft.version`` 1). ``metadata.version`` can
only become the one that records are written for. Version 0 of the request asks for upgrades alone,
whatever its ``allow_downgrade`` says, as in a real controller.

Source: a real controller's feature control; KIP-584, KIP-778.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from splitbrain.nodes.controller.basis.decisions import Decision, Refusal, View
from splitbrain.nodes.metadata.image import METADATA_VERSION
from splitbrain.nodes.metadata.records import (
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    SupportedFeature,
)
from splitbrain.nodes.wire.apis import VersionRange
from splitbrain.nodes.wire.controller_apis import CONTROLLER_FEATURES, PINNED_LEVELS
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.controllers import (
    FeatureToUpdate,
    UpdatedFeature,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

KRAFT_VERSION: Final = "kraft.version"
_UNSUPPORTED: Final = VersionRange(0, 0)
_ABLE: Final[Mapping[str, VersionRange]] = MappingProxyType(
    {
        **CONTROLLER_FEATURES,
        "eligible.leader.replicas.version": _UNSUPPORTED,
        KRAFT_VERSION: _UNSUPPORTED,
    }
)
#: Last version of the request that is answered feature by feature.
_RESULTS_UNTIL: Final = 1


class UpgradeType(IntEnum):
    """Kind of change that the caller accepts, with the numbers of UpdateFeatures."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


_UPGRADE_TYPES: Final = frozenset(UpgradeType)


def update_features(view: View, request: UpdateFeaturesRequest, version: int) -> Decision:
    """Decide about UpdateFeatures."""
    # Where a feature is named twice, the last one counts.
    updates = {update.feature: update for update in request.feature_updates}
    records: list[MetadataRecord] = []
    try:
        for update in updates.values():
            records += _update(view, update)
    except Refusal as refusal:
        problem = (
            "The update failed for all features since the following feature had an error: "
            f"{refusal.message}"
        )
        return Decision(
            UpdateFeaturesResponse(
                throttle_time_ms=0, error_code=refusal.code, error_message=problem
            )
        )
    answer = UpdateFeaturesResponse(
        throttle_time_ms=0,
        error_code=ApiError.NONE,
        error_message=None,
        results=tuple(
            UpdatedFeature(feature=update.feature, error_code=ApiError.NONE, error_message="NONE")
            for update in request.feature_updates
            if version <= _RESULTS_UNTIL
        ),
    )
    return Decision(answer, () if request.validate_only else tuple(records))


def _update(view: View, update: FeatureToUpdate) -> tuple[MetadataRecord, ...]:
    name, level = update.feature, update.max_version_level
    if update.upgrade_type not in _UPGRADE_TYPES:
        raise _refused(update, "The controller does not support the given upgrade type.")
    is_upgrade = update.upgrade_type == UpgradeType.UPGRADE
    if level < 0:
        raise _refused(update, "A feature version cannot be less than 0.")
    problem = _unsupported(view, name, level)
    if problem is not None:
        raise _refused(update, problem)
    current = view.image.features.get(name, 0)
    if level < current and is_upgrade:
        raise _refused(
            update,
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade.",
        )
    if level > current and not is_upgrade:
        raise _refused(update, "Can't downgrade to a newer version.")
    if name == METADATA_VERSION:
        _check_metadata_version(view, update, current)
    elif name == KRAFT_VERSION:
        # It stays at 0; a real controller marks an upgrade, even to what is there.
        return (NoOpRecord(),) if is_upgrade else ()
    elif name not in CONTROLLER_FEATURES:
        raise _refused(update, f"Feature {name} not found.")
    return (FeatureLevelRecord(name, level),)


def _check_metadata_version(view: View, update: FeatureToUpdate, current: int) -> None:
    level = update.max_version_level
    if level < current:
        reason = (
            "Unsafe metadata downgrade is not supported in this version."
            if update.upgrade_type == UpgradeType.UNSAFE_DOWNGRADE
            else "Refusing to perform the requested downgrade because it might delete metadata "
            "information."
        )
        raise Refusal(
            ApiError.INVALID_UPDATE_VERSION,
            f"Unsupported metadata.version downgrade from {current} to {level}. {reason}",
        )
    pinned = PINNED_LEVELS[METADATA_VERSION]
    if level != pinned:
        raise _refused(update, f"Local controller {view.node_id} only supports versions {pinned}")


def _unsupported(view: View, name: str, level: int) -> str | None:
    """Return a node that cannot work at this level; None if all can."""
    nodes = (
        (f"Local controller {view.node_id}", _ABLE.get(name, _UNSUPPORTED)),
        *(
            (f"Broker {broker_id}", _range_of(broker.features, name))
            for broker_id, broker in sorted(view.image.brokers.items())
        ),
        *(
            (f"Controller {controller_id}", _range_of(controller.features, name))
            for controller_id, controller in sorted(view.image.controllers.items())
        ),
    )
    for node, (lowest, highest) in nodes:
        if not lowest <= level <= highest:
            if highest == 0:
                return f"{node} does not support this feature."
            levels = str(lowest) if lowest == highest else f"{lowest}-{highest}"
            return f"{node} only supports versions {levels}"
    return None


def _range_of(features: Iterable[SupportedFeature], name: str) -> VersionRange:
    for feature in features:
        if feature.name == name:
            return VersionRange(feature.min_supported_version, feature.max_supported_version)
    return _UNSUPPORTED


def _refused(update: FeatureToUpdate, problem: str) -> Refusal:
    return Refusal(
        ApiError.INVALID_UPDATE_VERSION,
        f"Invalid update version {update.max_version_level} for feature {update.feature}. "
        f"{problem}",
    )
