"""The planted bugs of nodes with Kafka's metadata: of controllers, and of brokers."""

from typing import Final

from splitbrain.systems.kraft.planted_bug import PlantedBug

#: Their harm is in the controllers' image, where the simulation's invariants look for it.
_NO_CLIENT_ASKS: Final = (
    "no client of a run asks for what it spoils: brokers' epochs and fencing, leaders and ISRs of "
    "partitions, producer ids"
)
_OLD_AND_RIGHT: Final = "what the broker shows is old and right, as views may be"
_FIRST_MOMENTS: Final = "it is over within milliseconds of the first election of all"
#: In the order in which the nodes declare them.
METADATA_BUGS: Final = (
    PlantedBug(
        "broker-epoch-not-checked",
        "Requests of an earlier incarnation of a broker count as the present one's.",
        "splitbrain",
        "restart of a broker while requests of its last life are on their way",
        "invariant",
        unseen_because=_NO_CLIENT_ASKS,
        state_machine="metadata",
    ),
    PlantedBug(
        "unfenced-too-early",
        "A broker is unfenced before it has applied its own registration.",
        "splitbrain",
        "start of a broker that lags behind",
        "invariant",
        unseen_because=_NO_CLIENT_ASKS,
        state_machine="metadata",
    ),
    PlantedBug(
        "stale-partition-epoch-accepted",
        "A leader's proposal for an ISR counts although the partition has changed since.",
        "splitbrain",
        "change of a partition while its leader proposes",
        "invariant",
        unseen_because=_NO_CLIENT_ASKS,
        state_machine="metadata",
    ),
    PlantedBug(
        "ineligible-replica-accepted",
        "The ISR takes brokers that are fenced, about to go, or of an earlier incarnation.",
        "splitbrain",
        "fencing or restart of a broker while a leader proposes to take it in",
        "invariant",
        unseen_because=_NO_CLIENT_ASKS,
        state_machine="metadata",
    ),
    PlantedBug(
        "fenced-broker-stays-leader",
        "A fenced broker keeps its partitions and its places in the ISRs.",
        "splitbrain",
        "a broker that is silent for longer than its session",
        "invariant",
        unseen_because=_NO_CLIENT_ASKS,
        state_machine="metadata",
    ),
    PlantedBug(
        "shut-down-too-early",
        "A broker that shuts down may go before the others know the new leaders.",
        "splitbrain",
        "controlled shutdown of a broker while another one lags behind",
        "invariant",
        unseen_because=_NO_CLIENT_ASKS,
        state_machine="metadata",
    ),
    PlantedBug(
        "producer-ids-given-twice",
        "A block of producer ids is given away and not written down.",
        "splitbrain",
        "two brokers, or two controllers one after the other, that need ids",
        "invariant",
        unseen_because=_NO_CLIENT_ASKS,
        state_machine="metadata",
    ),
    PlantedBug(
        "live-broker-displaced",
        "A broker id is given to a second process while the first one lives.",
        "splitbrain",
        "two processes with one broker id",
        "invariant",
        unseen_because=_NO_CLIENT_ASKS,
        state_machine="metadata",
    ),
    PlantedBug(
        "broker-epoch-not-renewed",
        "A new incarnation of a broker gets the epoch of the one before.",
        "splitbrain",
        "restart of a broker",
        "invariant",
        unseen_because=_NO_CLIENT_ASKS,
        state_machine="metadata",
    ),
    PlantedBug(
        "activation-not-first",
        "A new leader registers itself before it has said what the cluster can have.",
        "splitbrain",
        "election of the first leader of all",
        "invariant",
        unseen_because=_FIRST_MOMENTS,
        state_machine="metadata",
    ),
    PlantedBug(
        "answered-before-commit",
        "Brokers are answered once the records of a decision are in the leader's log.",
        "splitbrain",
        "loss of the active controller between the append and the commit",
        "invariant",
        state_machine="metadata",
    ),
    PlantedBug(
        "open-transaction-kept",
        "A new leader does not abort the transaction that the last one left open.",
        "splitbrain; KIP-868 has the rule that forbids it",
        "loss of the first leader of all between two batches of what it writes first",
        "invariant",
        unseen_because=_FIRST_MOMENTS,
        state_machine="metadata",
    ),
    PlantedBug(
        "fenced-broker-serves",
        "A broker answers whether or not it has to believe that it is fenced.",
        "splitbrain",
        "a broker that is cut off from the controllers, or has just started",
        "invariant",
        unseen_because=_OLD_AND_RIGHT,
        state_machine="metadata",
    ),
    PlantedBug(
        "own-registration-not-awaited",
        "A broker serves once the controller calls it unfenced, before its own image does.",
        "splitbrain",
        "start of a broker whose log arrives late",
        "invariant",
        unseen_because=_OLD_AND_RIGHT,
        state_machine="metadata",
    ),
    PlantedBug(
        "older-image-shown",
        "A broker goes back to the image before the newest one, for half a second.",
        "splitbrain",
        "topics that are described at a broker while they are created and deleted",
        "outcome",
        state_machine="metadata",
    ),
    PlantedBug(
        "clean-stop-kept",
        "The epoch of a clean stop stays on the disk, and lives that crash pass it on.",
        "splitbrain",
        "clean stop of a broker, then a crash of its next life",
        "invariant",
        unseen_because=_NO_CLIENT_ASKS,
        state_machine="metadata",
    ),
    PlantedBug(
        "change-sent-again",
        "A broker sends a creation or a deletion again that may have been carried out.",
        "splitbrain",
        "loss of the active controller while brokers hand on changes",
        "outcome",
        unseen_because=(
            "leaders killed while their answers are late show it in fewer than half of the runs: "
            "what comes twice, other clients' changes mostly explain"
        ),
        state_machine="metadata",
    ),
)
