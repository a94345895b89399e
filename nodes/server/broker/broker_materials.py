"""Parts of which the broker of one life is made, and its identity.

Must never make two lives the same: each draws an incarnation of its own.
"""

from typing import Final, NamedTuple

from splitbrain.nodes.broker.settings import BrokerIdentity, BrokerSettings
from splitbrain.nodes.quorum.random_source import RandomSource
from splitbrain.nodes.server.broker.clean_stop import CleanStop
from splitbrain.nodes.server.host.incarnation import drawn_incarnation_id
from splitbrain.nodes.storage.identity import StorageIdentity
from splitbrain.nodes.wire.families.brokers import AdvertisedListener

#: Name of the listener that Kafka's clients are told of.
CLIENT_LISTENER: Final = "PLAINTEXT"
_PLAINTEXT: Final = 0


class BrokerMaterials(NamedTuple):
    """Parts of a broker, besides those that every layer is given."""

    settings: BrokerSettings
    #: Where Kafka's clients reach it.
    host: str
    port: int
    #: For the incarnation, and for whom clients take for the controller.
    random: RandomSource
    clean_stop: CleanStop


def broker_identity(identity: StorageIdentity, materials: BrokerMaterials) -> BrokerIdentity:
    """Return the broker's identity in a new life; takes what the last one left.

    Raises OSError: that cannot be read or taken away.
    """
    return BrokerIdentity(
        broker_id=identity.node_id,
        cluster_id=identity.cluster_id,
        incarnation_id=drawn_incarnation_id(materials.random),
        listeners=(
            AdvertisedListener(
                name=CLIENT_LISTENER,
                host=materials.host,
                port=materials.port,
                security_protocol=_PLAINTEXT,
            ),
        ),
        directories=(identity.directory_id,),
        previous_broker_epoch=materials.clean_stop.take(),
    )
