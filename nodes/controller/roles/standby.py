"""Answers of a controller that is not active: reads of the committed state.

Everything else it refuses, and says whom to ask. Must never write.

Source: a real controller's read events, which run wherever they are asked.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from splitbrain.nodes.controller.basis.contacts import Contacts
from splitbrain.nodes.controller.basis.decisions import Handler, View
from splitbrain.nodes.controller.configs.describe_configs import describe_configs
from splitbrain.nodes.controller.partitions.list_reassignments import list_reassignments
from splitbrain.nodes.controller.roles.active import Identity
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.quorum.identifiers import Microseconds, NodeId
from splitbrain.nodes.wire.apis import ApiKey

_READERS: Final[Mapping[ApiKey, Handler]] = MappingProxyType(
    {
        ApiKey.DESCRIBE_CONFIGS: describe_configs,
        ApiKey.LIST_PARTITION_REASSIGNMENTS: list_reassignments,
    }
)


def read(
    identity: Identity, image: MetadataImage, api_key: ApiKey, request: msgspec.Struct, version: int
) -> msgspec.Struct | None:
    """Return the answer from what is committed; None if only the active controller can give it."""
    reader = _READERS.get(api_key)
    if reader is None:
        return None
    view = View(
        image=image,
        next_offset=image.provenance.end_offset,
        # Nothing of time, nor of chance, is read.
        now=Microseconds(0),
        settings=identity.settings,
        contacts=Contacts(),
        random=identity.random,
        cluster_id=identity.cluster_id,
        node_id=identity.node_id,
    )
    decision = reader(view, request, version)
    assert not decision.records
    return decision.answer


def wrong_controller(leader_id: NodeId | None) -> str:
    """Why this controller does not decide, and who does; None where nobody is known to lead."""
    if leader_id is None:
        return "No controller appears to be active."
    return f"The active controller appears to be node {leader_id}."
