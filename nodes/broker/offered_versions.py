"""A broker's answer to ``ApiVersions``: APIs that it answers itself, and those it can hand on.

An API that is forwarded is offered in the versions that broker and active controller both speak; a
client that asked in another would be cut off (``nodes.broker.forwarding``). Until the broker knows
its controller's versions it offers its own, as a real broker does.

Source: KIP-590, KIP-584; Kafka 4.3.1's ApiVersionsResponse and DefaultApiVersionManager.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from splitbrain.nodes.broker.forwarding import FORWARDED
from splitbrain.nodes.broker.serving import ANSWERED
from splitbrain.nodes.broker.settings import BROKER_FEATURES
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.wire.api_versions import ApiVersionsResponse, served_versions
from splitbrain.nodes.wire.apis import ApiKey, VersionRange
from splitbrain.nodes.wire.calls import TABLES

_OWN: Final[Mapping[ApiKey, VersionRange]] = MappingProxyType(
    {api_key: TABLES[api_key].versions for api_key in {ApiKey.API_VERSIONS, *ANSWERED, *FORWARDED}}
)


def offered_versions(
    image: MetadataImage, controller: ApiVersionsResponse | None
) -> ApiVersionsResponse:
    """The answer to ApiVersions; ``controller``: what the active controller answered to it."""
    versions = _OWN if controller is None else _with_controller(controller)
    return served_versions(versions, BROKER_FEATURES, image.features, image.provenance.last_offset)


def _with_controller(controller: ApiVersionsResponse) -> Mapping[ApiKey, VersionRange]:
    theirs = controller.versions()
    both: dict[ApiKey, VersionRange] = {}
    for api_key, own in _OWN.items():
        if api_key not in FORWARDED:
            both[api_key] = own
        elif (other := theirs.get(api_key)) is not None:
            lowest, highest = max(own.lowest, other.lowest), min(own.highest, other.highest)
            if lowest <= highest:
                both[api_key] = VersionRange(lowest, highest)
    return both
