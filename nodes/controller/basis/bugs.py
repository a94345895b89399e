"""Planted bugs of the controller: known ways to get it wrong, each a branch in the code, all off.

As ``nodes.quorum.bugs``, with which it shares one list of names: ``nodes.server.start.planted``.
"""

from typing import Final

import msgspec


class ControllerBugs(msgspec.Struct, frozen=True):
    """Which bugs are on. The default is the correct controller."""

    #: An earlier incarnation's requests count as the present one's.
    broker_epoch_not_checked: bool = False
    #: A broker is unfenced before it has applied its own registration.
    unfenced_too_early: bool = False
    #: A leader's proposal counts although the partition has changed since.
    stale_partition_epoch_accepted: bool = False
    #: The ISR takes fenced brokers, those that leave, and earlier incarnations.
    ineligible_replica_accepted: bool = False
    #: A fenced broker keeps its partitions and its places in the ISRs.
    fenced_broker_stays_leader: bool = False
    #: A broker that shuts down may go before the others know the new leaders.
    shut_down_too_early: bool = False
    #: A block of producer ids is given away and not written down.
    producer_ids_given_twice: bool = False
    #: A broker id is given to a second process while the first one lives.
    live_broker_displaced: bool = False
    #: A new incarnation of a broker gets the epoch of the one before.
    broker_epoch_not_renewed: bool = False
    #: A new leader registers itself before it has said what the cluster can have.
    activation_not_first: bool = False
    #: Who asks in Kafka's protocol is answered once the records are appended.
    answered_before_commit: bool = False
    #: A new leader goes on in the transaction that the last one left open.
    open_transaction_kept: bool = False


NO_BUGS: Final = ControllerBugs()
