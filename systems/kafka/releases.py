"""The releases of Kafka that are deployed, and what of each decides how a node is configured. Pure.

Source: Kafka's documentation of configuration by release; KIP-848, KIP-853, KIP-890,
KIP-966.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from splitbrain.systems.kafka.group_settings import CLASSIC, CONSUMER

#: Decided when a node's folder is formatted: whether controllers remember who may lead (KIP-966).
ELIGIBLE: Final = "eligible.leader.replicas.version"
#: Of the cluster and its clients (KIP-890), decided at formatting, too.
TRANSACTIONS: Final = "transaction.version"
#: Whether there are share groups (KIP-932).
SHARES: Final = "share.version"
#: Whether a broker asks the coordinator before it appends a record of a transaction.
VERIFIES: Final = "transaction.partition.verification.enable"


class Release(msgspec.Struct, frozen=True):
    """One release, and the values that its settings can have, the usual one first."""

    #: That are named when a folder is formatted; earlier releases have no such option.
    features: Mapping[str, tuple[str, ...]] = {}
    #: Of brokers, beyond what all releases have.
    settings: Mapping[str, tuple[str, ...]] = {}
    #: Of consumer groups.
    group_protocols: tuple[str, ...] = (CLASSIC,)
    #: Whether brokers can live on ZooKeeper.
    has_zookeeper: bool = True
    #: Whether a node advertises its controller's listener; before KIP-853 none may.
    advertises_controllers: bool = False
    #: Whether a controller that hears nothing of a majority resigns (KAFKA-15489).
    resigns: bool = True


_VERIFYING: Final = {VERIFIES: ("true", "false")}
#: Replicas that have a commit of a group before it is acknowledged, -1: all in sync; nobody may
#: choose any more from 4.0 on.
_COMMITS: Final = {"offsets.commit.required.acks": ("-1", "1")}
_TRANSACTIONS_OF_4: Final = {TRANSACTIONS: ("2", "1")}
_OF_4: Final = Release(
    {ELIGIBLE: ("1", "0"), **_TRANSACTIONS_OF_4, SHARES: ("1", "0")},
    _VERIFYING,
    group_protocols=(CLASSIC, CONSUMER),
    has_zookeeper=False,
    advertises_controllers=True,
)
#: By version, the usual one first.
RELEASES: Final[Mapping[str, Release]] = {
    "4.3.1": _OF_4,
    "4.1.2": _OF_4,
    # The first with eligible replicas, which new clusters do not have unless they ask for them.
    "4.0.2": msgspec.structs.replace(_OF_4, features={ELIGIBLE: ("0", "1"), **_TRANSACTIONS_OF_4}),
    "3.9.2": Release(settings={**_VERIFYING, **_COMMITS}, advertises_controllers=True),
    "3.7.2": Release(settings={**_VERIFYING, **_COMMITS}),
    "3.6.2": Release(settings={**_VERIFYING, **_COMMITS}, resigns=False),
    "3.5.2": Release(settings=_COMMITS, resigns=False),
    "3.4.1": Release(settings=_COMMITS, resigns=False),
}
