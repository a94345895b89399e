"""IncrementalAlterConfigs and AlterConfigs: each resource for itself, all its configs or none.

Where one config is named twice for a resource, the last one counts, as in a real controller; a
real broker refuses that before it passes the request on.

Source: a real controller's API layer; KIP-133, KIP-339.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from splitbrain.nodes.controller.basis.batch_limit import RecordBatch
from splitbrain.nodes.controller.basis.decisions import Decision, Refusal, View, bad_request
from splitbrain.nodes.controller.configs.config_changes import (
    ConfigChange,
    ConfigOperation,
    changed_configs,
    replaced_configs,
)
from splitbrain.nodes.controller.configs.config_validation import ResourceType
from splitbrain.nodes.metadata.records import ConfigRecord, MetadataRecord
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlteredResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ResourceToChange,
    ResourceToSet,
)

_Resource = TypeVar("_Resource", ResourceToChange, ResourceToSet)
_TYPES: Final = frozenset(ResourceType)
_ALTERABLE: Final = _TYPES - {ResourceType.BROKER_LOGGER}
_OPERATIONS: Final = frozenset(ConfigOperation)


def alter_configs_incrementally(
    view: View, request: IncrementalAlterConfigsRequest, _version: int
) -> Decision:
    """Decide about IncrementalAlterConfigs."""

    def changed(wanted: ResourceToChange) -> Iterable[ConfigRecord]:
        changes: dict[str, ConfigChange] = {}
        for config in wanted.configs:
            if config.config_operation not in _OPERATIONS:
                raise bad_request(f"Unknown operations type {config.config_operation}")
            operation = ConfigOperation(config.config_operation)
            changes[config.name] = ConfigChange(operation, config.value)
        return changed_configs(view.image, (wanted.resource_type, wanted.resource_name), changes)

    answers, records = _altered(view, request.resources, changed)
    answer = IncrementalAlterConfigsResponse(throttle_time_ms=0, responses=answers)
    return Decision(answer, () if request.validate_only else records)


def alter_configs(view: View, request: AlterConfigsRequest, _version: int) -> Decision:
    """Decide about AlterConfigs, which removes what it does not name."""

    def replaced(wanted: ResourceToSet) -> Iterable[ConfigRecord]:
        configs = {config.name: config.value for config in wanted.configs}
        return replaced_configs(view.image, (wanted.resource_type, wanted.resource_name), configs)

    answers, records = _altered(view, request.resources, replaced)
    answer = AlterConfigsResponse(throttle_time_ms=0, responses=answers)
    return Decision(answer, () if request.validate_only else records)


def _altered(
    view: View,
    resources: Sequence[_Resource],
    written: Callable[[_Resource], Iterable[ConfigRecord]],
) -> tuple[tuple[AlteredResource, ...], tuple[MetadataRecord, ...]]:
    """Answers and records; too many records refuse all resources.

    A resource of unknown type is refused each time it is named, any other once.
    """
    named = Counter((each.resource_type, each.resource_name) for each in resources)
    batch = RecordBatch(view)
    answers: list[AlteredResource] = []
    answered: set[tuple[int, str]] = set()
    for each in resources:
        resource = (each.resource_type, each.resource_name)
        if resource in answered:
            continue
        if each.resource_type in _TYPES:
            answered.add(resource)
        try:
            _check_resource(each.resource_type, is_twice=named[resource] > 1)
            records = tuple(written(each))
        except Refusal as refusal:
            answers.append(_answer(each, refusal))
            continue
        try:
            batch.add(records)
        except Refusal as refusal:
            return tuple(_answer(other, refusal) for other in resources), ()
        answers.append(_answer(each))
    return tuple(answers), tuple(batch.records)


def _check_resource(kind: int, *, is_twice: bool) -> None:
    if kind not in _TYPES:
        raise Refusal(ApiError.UNSUPPORTED_VERSION, f"Unknown resource type {kind}.")
    if is_twice:
        raise bad_request("Duplicate resource.")
    if kind not in _ALTERABLE:
        # Levels of a node's loggers are no metadata, and ours has none that can change.
        raise bad_request(f"Unexpected resource type {ResourceType(kind).name}.")


def _answer(
    resource: ResourceToChange | ResourceToSet, refusal: Refusal | None = None
) -> AlteredResource:
    return AlteredResource(
        error_code=ApiError.NONE if refusal is None else refusal.code,
        error_message=None if refusal is None else refusal.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
