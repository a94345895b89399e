"""Registration that a controller sends to the active one, which may be itself.

Source: KIP-919.
"""

from typing import Final

from splitbrain.nodes.storage.identity import StorageIdentity
from splitbrain.nodes.wire.apis import QUORUM_LISTENER
from splitbrain.nodes.wire.controller_apis import CONTROLLER_FEATURES
from splitbrain.nodes.wire.families.controllers import ControllerRegistrationRequest
from splitbrain.nodes.wire.families.parts import AdvertisedListener, SupportedFeature

_PLAINTEXT: Final = 0


def own_registration(
    identity: StorageIdentity, incarnation_id: str
) -> ControllerRegistrationRequest:
    """Return the request of this life, 32 hex digits its ``incarnation_id``."""
    listeners = tuple(
        AdvertisedListener(
            name=QUORUM_LISTENER,
            host=voter.host,
            port=voter.port,
            security_protocol=_PLAINTEXT,
        )
        for voter in identity.voters
        if voter.node_id == identity.node_id
    )
    features = tuple(
        SupportedFeature(
            name=name,
            min_supported_version=levels.lowest,
            max_supported_version=levels.highest,
        )
        for name, levels in CONTROLLER_FEATURES.items()
    )
    return ControllerRegistrationRequest(
        controller_id=identity.node_id,
        incarnation_id=incarnation_id,
        zk_migration_ready=False,
        listeners=listeners,
        features=features,
    )
