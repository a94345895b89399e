"""The planted bugs of nodes with Kafka's metadata: of controllers, and of brokers."""

from typing import Final

from systems.kraft.planted_bug import PlantedBug

_NO_BROKERS: Final = "no plan of containers runs brokers on the metadata state machine"
#: In the order in which the nodes declare them.
METADATA_BUGS: Final = (
    PlantedBug(
        "broker-epoch-not-checked",
        "Requests of an earlier incarnation of a broker count as the present one's.",
        "splitbrain",
        "restart of a broker while requests of its last life are on their way",
        "invariant",
        unseen_because=_NO_BROKERS,
        state_machine="metadata",
    ),
    PlantedBug(
        "unfenced-too-early",
        "A broker is unfenced before it has applied its own registration.",
        "splitbrain",
        "start of a broker that lags behind",
        "invariant",
        unseen_because=_NO_BROKERS,
        state_machine="metadata",
    ),
    PlantedBug(
        "stale-partition-epoch-accepted",
        "A leader's proposal for an ISR counts although the partition has changed since.",
        "splitbrain",
        "change of a partition while its leader proposes",
        "invariant",
        unseen_because=_NO_BROKERS,
        state_machine="metadata",
    ),
    PlantedBug(
        "ineligible-replica-accepted",
        "The ISR takes brokers that are fenced, about to go, or of an earlier incarnation.",
        "splitbrain",
        "fencing or restart of a broker while a leader proposes to take it in",
        "invariant",
        unseen_because=_NO_BROKERS,
        state_machine="metadata",
    ),
    PlantedBug(
        "fenced-broker-stays-leader",
        "A fenced broker keeps its partitions and its places in the ISRs.",
        "splitbrain",
        "a broker that is silent for longer than its session",
        "invariant",
        unseen_because=_NO_BROKERS,
        state_machine="metadata",
    ),
    PlantedBug(
        "shut-down-too-early",
        "A broker that shuts down may go before the others know the new leaders.",
        "splitbrain",
        "controlled shutdown of a broker while another one lags behind",
        "invariant",
        unseen_because=_NO_BROKERS,
        state_machine="metadata",
    ),
    PlantedBug(
        "producer-ids-given-twice",
        "A block of producer ids is given away and not written down.",
        "splitbrain",
        "two brokers, or two controllers one after the other, that need ids",
        "invariant",
        unseen_because=_NO_BROKERS,
        state_machine="metadata",
    ),
    PlantedBug(
        "live-broker-displaced",
        "A broker id is given to a second process while the first one lives.",
        "splitbrain",
        "two processes with one broker id",
        "invariant",
        unseen_because=_NO_BROKERS,
        state_machine="metadata",
    ),
    PlantedBug(
        "broker-epoch-not-renewed",
        "A new incarnation of a broker gets the epoch of the one before.",
        "splitbrain",
        "restart of a broker",
        "invariant",
        unseen_because=_NO_BROKERS,
        state_machine="metadata",
    ),
)
