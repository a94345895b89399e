"""Lines that Kafka prints of its leaders, as state events; releases have words of their own."""

from typing import Any

import pytest

from splitbrain.contracts.state_event import StateEvent
from splitbrain.systems.kafka.printed_events import state_events

MAIN = "splitbrain-0"
STARTED = "INFO LoggingSignalHandler: Registered signal handlers for TERM, INT, HUP"
STOPPED = "INFO BrokerServer: [BrokerServer id=1] shut down completed"
LEADS = (
    "INFO logger: [Broker id=1] Leader splitbrain-0 with topic id Some(6pwahRAYSEmpQnkJvVFUkA) "
    "starts at leader epoch 2 from offset 788 with partition epoch 3, high watermark 787, "
    "ISR [1,3], adding replicas [] and removing replicas [] . Previous leader Some(2) and "
    "previous leader epoch was 1."
)
FOLLOWS = (
    "INFO logger: [Broker id=1] Follower splitbrain-0 starts at leader epoch 3 from offset 942 "
    "with partition epoch 5 and high watermark 908. Current leader is 3. Previous leader Some(1) "
    "and previous leader epoch was 2."
)
LEADERLESS = FOLLOWS.replace("Current leader is 3", "Current leader is -1")
QUORUM = "INFO QuorumState: [RaftManager id=1] Completed transition to "
FROM = " from FollowerState(fetchTimeoutMs=2000, epoch=8, leader=9)"
#: Role, epoch and leader by each line.
OF_QUORUM = {
    QUORUM + "UnattachedState(epoch=2, leaderId=OptionalInt.empty, voters=[1, 2, 3])": (
        *("unattached", 2, None),
    ),
    QUORUM + "ProspectiveState(epoch=2, leaderId=OptionalInt[3], epochElection=EpochElection[])": (
        *("prospective", 2, 3),
    ),
    QUORUM + "FollowerState(fetchTimeoutMs=2000, epoch=2, leader=3, votedKey=Optional.empty)": (
        *("follower", 2, 3),
    ),
    QUORUM + "FollowerState(fetchTimeoutMs=2000, epoch=2, leaderId=3, voters=[1, 2, 3])": (
        *("follower", 2, 3),
    ),
    QUORUM + "Leader(localVoterNode=VoterNode(voterKey=ReplicaKey(id=1)), epoch=5, start=4)": (
        *("leader", 5, 1),
    ),
    QUORUM + "ResignedState(localId=1, epoch=5, voters=[1, 2, 3])": ("resigned", 5, None),
    "INFO KafkaController: [Controller id=1] 1 successfully elected as the controller. Epoch "
    "incremented to 5 and epoch zk version is now 5": ("leader", 5, 1),
}


def events(*lines: str) -> list[StateEvent]:
    return [*state_events("n1", enumerate(lines), MAIN)]


def parts(*lines: str) -> list[dict[str, Any]]:
    return [event.detail for event in events(*lines) if event.kind == "part"]


def test_roles_in_the_partition_by_which_faults_are_aimed() -> None:
    told = events(STARTED, "INFO other", LEADS, FOLLOWS, LEADERLESS, STOPPED, STARTED)
    assert [
        (event.incarnation, event.sequence, event.kind, event.role, event.epoch, event.leader)
        for event in told
    ] == [
        (0, 0, "started", None, 0, None),
        (0, 1, "role", "leader", 2, 1),
        (0, 2, "role", "follower", 3, 3),
        (0, 3, "role", "follower", 3, None),
        (0, 4, "stopped", None, 3, None),
        (1, 0, "started", None, 3, None),
    ]
    assert [event.time for event in told] == [0, 2, 3, 4, 5, 6]


def test_other_partitions_are_parts() -> None:
    # A topic whose name begins as the main one's.
    lines = [line.replace(MAIN, f"{MAIN}0") for line in (LEADS, FOLLOWS)]
    assert parts(*lines) == [
        {"part": "splitbrain-00", "epoch": 2, "role": "leader", "leader": 1},
        {"part": "splitbrain-00", "epoch": 3, "role": "follower", "leader": 3},
    ]


@pytest.mark.parametrize("line", OF_QUORUM)
@pytest.mark.parametrize("behind", ["", FROM])
def test_the_metadata_has_leaders_of_its_own(line: str, behind: str) -> None:
    ((role, epoch, leader),) = [
        (told["role"], told["epoch"], told["leader"]) for told in parts(line + behind)
    ]
    assert (role, epoch, leader) == OF_QUORUM[line]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "INFO logger: [Broker id=1] Skipped the become-follower state change for splitbrain-0",
        QUORUM.replace("Completed", "Attempting durable") + "UnattachedState(epoch=2)",
    ],
)
def test_other_lines_tell_nothing(line: str) -> None:
    assert events(line) == []
