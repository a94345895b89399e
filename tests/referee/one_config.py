"""The request that sets a single config. Pure."""

from typing import Final

from splitbrain.nodes.controller.configs.config_validation import ResourceType
from splitbrain.nodes.wire.families.configs import (
    ConfigChange,
    IncrementalAlterConfigsRequest,
    ResourceToChange,
)

_SET: Final = 0


def set_config(
    kind: ResourceType, resource: str, name: str, value: str
) -> IncrementalAlterConfigsRequest:
    """Of a broker without a name: the default of all brokers."""
    change = ConfigChange(name=name, config_operation=_SET, value=value)
    changed = ResourceToChange(resource_type=kind, resource_name=resource, configs=(change,))
    return IncrementalAlterConfigsRequest(resources=(changed,), validate_only=False)
