"""The planted bugs of our nodes: what each does, where it was seen, what brings it to light.

The nodes themselves know only the names (``nodes.server.start.planted``). Here are the quorum's;
those of the state machine above it stand in ``systems.kraft.planted_metadata_bugs``. Must never
name a bug that the nodes do not have.
"""

from collections.abc import Mapping
from typing import Final

from splitbrain.systems.kraft.planted_bug import PlantedBug
from splitbrain.systems.kraft.planted_metadata_bugs import METADATA_BUGS

_BUGS: Final = (
    PlantedBug(
        "vote-not-persisted",
        "A voter answers before its vote is durable, and a restart forgets it.",
        "NodeDB-Lab/nodedb#161",
        "restart of a voter between two candidacies in one epoch",
        "invariant",
        unseen_because=(
            "whom a vote elects is written down within milliseconds of it, and the vote "
            "with that; no fault from outside falls between"
        ),
    ),
    PlantedBug(
        "ack-before-fsync",
        "Appended records count as flushed at once.",
        "yugabyte/yugabyte-db#32875, deventlab/d-engine#446",
        "power loss of a majority while writes are in flight",
        "invariant",
    ),
    PlantedBug(
        "prior-epoch-commit",
        "A leader commits records of earlier epochs by counting copies.",
        "logcabin/logcabin#44, Ongaro's thesis section 3.6.2",
        "leaders that crash one after the other before their first commit",
        "invariant",
        unseen_because=(
            "two more leaders must each be lost between their election and their first "
            "commit; slow links make room for one of them, hardly for both"
        ),
    ),
    PlantedBug(
        "truncate-below-high-watermark",
        "A follower drops committed records when its log diverges.",
        "vesoft-inc/nebula#2483",
        "a deposed leader comes back with records that nobody else has",
        "invariant",
    ),
    PlantedBug(
        "stale-leader-reads",
        "A leader answers reads without asking whether it still leads, and does not resign.",
        "Hoverbear/old-raft-rs#107, ktoso/akka-raft#65",
        "partition of the leader while clients still reach it",
        "outcome",
    ),
    PlantedBug(
        "ack-before-commit",
        "A write is acknowledged once the leader alone holds it.",
        "splitbrain",
        "partition or crash of the leader while writes are in flight",
        "outcome",
    ),
    PlantedBug(
        "vote-answered-before-durable",
        "Votes and requests for votes leave before the quorum state behind them is durable.",
        "valkey-io/valkey#3887 (review), tikv/tikv#1610",
        "crash between a vote and the end of its write, slow disks",
        "invariant",
        unseen_because=(
            "the vote is durable milliseconds after it has left, and a frozen disk, "
            "which would widen that, lets the write in hand through before it can be "
            "taken away"
        ),
    ),
    PlantedBug(
        "epoch-not-persisted",
        "A move to a higher epoch without a vote stays in memory.",
        "bakwc/PySyncObj#202",
        "restart of a node after it has heard of a higher epoch",
        "invariant",
    ),
    PlantedBug(
        "double-vote-same-epoch",
        "A voter votes again in an epoch for a candidate with a longer log than its own.",
        "vesoft-inc/nebula#2405, microsoft/CCF#8094",
        "two candidates in one epoch, and a voter that lags behind",
        "invariant",
    ),
    PlantedBug(
        "vote-ignores-log",
        "Votes and pre-votes are granted whatever the candidate's log.",
        "splitbrain (Raft paper section 5.4.1)",
        "crash of the leader while a follower lags behind",
        "invariant",
    ),
    PlantedBug(
        "pre-vote-ignores-log",
        "Pre-votes are granted whatever the candidate's log: who cannot win raises the epoch.",
        "ClickHouse/NuRaft#134",
        "loss of the leader while the voter that times out first lags behind",
        "invariant",
        unseen_because=(
            "it costs epochs and time, no record: nothing that clients see or logs hold is wrong"
        ),
    ),
    PlantedBug(
        "stale-vote-counted",
        "Answers to the pre-votes of a round are counted as votes of the election after it.",
        "andreev-io/little-raft#44; apache/kafka#17807 says why Kafka cannot",
        "uneven delays between voters that stand at the same time",
        "invariant",
        unseen_because=(
            "two candidates of one epoch must each have answers to pre-votes on their "
            "way, an order within milliseconds that no fault of whole links makes"
        ),
    ),
    PlantedBug(
        "leader-survives-epoch-bump",
        "A leader that hears of a higher epoch goes on as the leader of that epoch.",
        "camunda/camunda#5360",
        "a voter cut off from the leader stands for election and comes back",
        "invariant",
        unseen_because=(
            "a leader hears of a higher epoch from whoever leads it by then, and "
            "follows; it would have to hear of it from a candidate, within the "
            "milliseconds of an election"
        ),
    ),
    PlantedBug(
        "leader-resumes-after-restart",
        "A restarted leader goes on leading the epoch that it led.",
        "KAFKA-10527 (apache/kafka#9348)",
        "crash of the leader with unsynced records, and a quick restart",
        "invariant",
        unseen_because=(
            "others lead before a killed process has started again, and a cut of its "
            "power seldom takes a record that two others hold already"
        ),
    ),
    PlantedBug(
        "isolated-leader-stays",
        "A leader without fetches from a majority never resigns.",
        "KAFKA-15489 (apache/kafka#14428)",
        "partial partition: the leader keeps one of the followers that a majority needs",
        "liveness",
        unseen_because=(
            "the cluster stands still until the links are back, and then goes on: time "
            "lost, and nothing wrong"
        ),
    ),
    PlantedBug(
        "unflushed-counts",
        "A leader counts its own records for the high watermark before they are flushed.",
        "deventlab/d-engine#329",
        "power loss of the leader while its flush is under way",
        "invariant",
        unseen_because=(
            "the leader's flush ends within milliseconds of its followers', so no power "
            "cut leaves an acknowledged record on one node alone"
        ),
    ),
    PlantedBug(
        "high-watermark-before-own-epoch",
        "A high watermark that reaches the start of the leader's epoch counts as its first commit.",
        "KAFKA-12619 (apache/kafka#10481)",
        "any election; to lose a record, two more leaders that crash before their first commit",
        "invariant",
        unseen_because=(
            "as for prior-epoch-commit: two more leaders must be lost before their first commit"
        ),
    ),
    PlantedBug(
        "no-divergence-check",
        "A leader takes a fetch offset within its log for agreement, whatever the last epoch.",
        "ktoso/akka-raft#32, cloud-software-foundation/c5#43",
        "a deposed leader comes back with records that nobody else has",
        "invariant",
    ),
    PlantedBug(
        "follower-high-watermark-ahead",
        "A follower takes the high watermark of a diverging answer before it truncates its log.",
        "KAFKA-14704 (apache/kafka#13245), scylladb/scylladb#9965",
        "a deposed leader comes back with records that nobody else has",
        "invariant",
    ),
    PlantedBug(
        "stale-answer-accepted",
        "Any answer of the peer settles the outstanding request, also one to an earlier request.",
        "KAFKA-5595 (apache/kafka#3530)",
        "timeouts and changes of role while answers are on their way",
        "invariant",
        unseen_because=(
            "a voter that wakes up answers all pre-votes at once and so elects a candidate "
            "milliseconds before it votes for it; for harm, two of them must stand in one "
            "epoch, and the first to be elected tells the voter in those milliseconds"
        ),
    ),
    PlantedBug(
        "correlation-restarts",
        "Answers are matched by a correlation that starts at zero in every life and every role.",
        "redpanda-data/redpanda#6021",
        "change of role while answers to pre-votes or votes are on their way",
        "invariant",
        unseen_because=(
            "as for stale-answer-accepted, and an answer of an earlier role must meet a "
            "request with the same number"
        ),
    ),
    PlantedBug(
        "read-confirmed-by-old-fetch",
        "A fetch confirms every read asked so far, also one asked after the fetch was sent.",
        "antflydb/antfly#599",
        "a deposed leader gets a delayed fetch just after a read",
        "outcome",
    ),
    PlantedBug(
        "read-before-own-commit",
        "A new leader serves reads from the high watermark that it knew as a follower.",
        "etcd-io/etcd#7331",
        "loss of the leader right after a commit, and a read at its successor",
        "outcome",
        unseen_because=(
            "a new leader commits in its epoch within milliseconds of its election, and "
            "a read must be answered in between"
        ),
    ),
    PlantedBug(
        "quorum-state-not-atomic",
        "The quorum state is overwritten in place, not replaced.",
        "ClickHouse/ClickHouse#111454",
        "crash within the write of the quorum state",
        "outcome",
        unseen_because="the file is half written for microseconds, a few times in a run",
    ),
    PlantedBug(
        "rename-not-synced",
        "The folder is not synced after the quorum state or the epoch checkpoint was renamed.",
        "baidu/braft#254",
        "power loss after a vote",
        "invariant",
        unseen_because=(
            "ext4 makes all names durable with the next fsync of any file, and the "
            "log's follows within milliseconds"
        ),
    ),
    PlantedBug(
        "segment-name-not-synced",
        "The folder is not synced after a segment was made, so its name may be lost.",
        "KAFKA-3968 (apache/kafka#10405)",
        "power loss after the log has begun a segment",
        "invariant",
        unseen_because=(
            "ext4 makes a new file's name durable with the first fsync of the file itself"
        ),
    ),
    PlantedBug(
        "failed-fsync-retried",
        "A failed sync of the log is tried again, and the success of that counts.",
        "cockroachdb/cockroach#37102",
        "one failed fsync, then power loss",
        "invariant",
        unseen_because=(
            "no fault here fails one fsync and lets the next one succeed: ext4 that has "
            "met an error stays read-only"
        ),
    ),
    PlantedBug(
        "mark-leads-flush",
        "The durable-length mark is written before the bytes that it tells of are synced.",
        "splitbrain",
        "power loss between the mark and the sync",
        "outcome",
    ),
    PlantedBug(
        "mark-not-rolled-back",
        "The durable-length mark is not lowered when the log is truncated.",
        "redpanda-data/redpanda#2937",
        "restart of a node soon after a truncation",
        "outcome",
    ),
    PlantedBug(
        "corruption-as-torn-tail",
        "An invalid batch below the durable-length mark is cut off as a torn tail.",
        "camunda/camunda#6098, HarperFast/harper#2016",
        "rot in flushed bytes, then a restart",
        "invariant",
    ),
    PlantedBug(
        "checksum-not-verified",
        "The checksum of a batch in the own log is not compared.",
        "cockroachdb/cockroach#93519",
        "rot in flushed records, then a restart",
        "outcome",
    ),
    PlantedBug(
        "epoch-rot-unnoticed",
        "The epoch of a batch, which no checksum covers, is not compared with the checkpoint.",
        "splitbrain",
        "rot in the epoch of a flushed batch, then a restart",
        "invariant",
    ),
    PlantedBug(
        "snapshot-id-off-by-one",
        "A snapshot is named after the last offset in it, not after the one behind that.",
        "splitbrain",
        "any snapshot; a record is applied twice, or a log cut within a batch, where one is loaded",
        "invariant",
        unseen_because=(
            "a register that is written twice with one value, or a compare-and-set that is refused "
            "the second time, shows nothing to a client"
        ),
    ),
    PlantedBug(
        "log-cut-before-snapshot",
        "The log loses its beginning, and older snapshots go, when a snapshot is begun.",
        "splitbrain",
        "crash while a snapshot is being written",
        "invariant",
        unseen_because=(
            "a few registers are written down within milliseconds, once in 20 MiB of records"
        ),
    ),
    PlantedBug(
        "delta-lost-at-snapshot-load",
        "What is committed first after a snapshot was loaded counts as a part of it.",
        "splitbrain",
        "restart of a node that has a snapshot, or one that lags so far that it must fetch it",
        "outcome",
        unseen_because="no run in containers writes the 20 MiB after which a snapshot comes",
    ),
    PlantedBug(
        "newest-snapshot-removed",
        "Where older snapshots are removed, the one that the log begins with goes with them.",
        "splitbrain",
        "restart of a node after its log lost its beginning",
        "invariant",
        unseen_because="no run in containers writes the 20 MiB after which a snapshot comes",
    ),
    PlantedBug(
        "applied-out-of-order",
        "Of the committed batches that are applied at once the last one is applied first.",
        "splitbrain",
        "several batches that are committed at once",
        "invariant",
    ),
    PlantedBug(
        "follows-granted-pre-vote",
        "A voter follows the leader that a granted pre-vote names, dead or not.",
        "splitbrain; apache/kafka#18240 tests the rule that forbids it",
        "death of the leader, seen by all as a refused connection",
        "liveness",
        unseen_because=(
            "a cluster that makes no progress is unknown or vacuous in a container run, "
            "never invalid"
        ),
    ),
    PlantedBug(
        "observer-loses-its-leader",
        "An observer that has lost its leader does not take the same one for news.",
        "KAFKA-19354 (apache/kafka#19854)",
        "an observer cut off for longer than its fetch timeout, with no election meanwhile",
        "liveness",
        unseen_because=(
            "clusters in containers have no observers but wiped voters, and those may "
            "stand still unseen"
        ),
    ),
    PlantedBug(
        "resigned-never-stands",
        "A resigned leader waits for another one, and never stands itself.",
        "splitbrain",
        "restart of the leader with the only complete log among a bare majority",
        "liveness",
        unseen_because=(
            "a cluster that makes no progress is unknown or vacuous in a container run, "
            "never invalid"
        ),
    ),
    PlantedBug(
        "candidate-never-gives-up",
        "A candidate asks once, waits for every vote that is still out, and never begins anew.",
        "ktoso/akka-raft#31",
        "a vote that is lost on its way to the candidate with the longest log of a bare majority",
        "liveness",
        unseen_because=(
            "a cluster that makes no progress is unknown or vacuous in a container run, "
            "never invalid"
        ),
    ),
)

#: By name, in the order in which the nodes declare them.
REGISTRY: Final[Mapping[str, PlantedBug]] = {bug.name: bug for bug in (*_BUGS, *METADATA_BUGS)}

#: Name to sentence, in the same order.
PLANTED_BUGS: Final[Mapping[str, str]] = {name: bug.mechanism for name, bug in REGISTRY.items()}
