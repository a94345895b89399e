"""State events in what brokers and controllers print: who leads which partition, and the quorum.

A broker prints a line when it has heard of a partition's leader epoch, a controller one for each of
its own roles. They are informational lines, of the default log level. Source: the messages of
``ReplicaManager``, ``QuorumState``, ``KafkaController`` and the servers' ends in Kafka 3.4 to 4.3.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from splitbrain.contracts.state_event import PART, PART_EPOCH, PART_LEADER, PART_ROLE, StateEvent

#: The log of metadata, whose leader is the active controller.
METADATA: Final = "__cluster_metadata"
#: Printed once a life by the server itself, and not by what formats its folder before.
_STARTED: Final = "Registered signal handlers for"
_STOPPED: Final = re.compile(r"\[(?:Broker|Kafka)Server id=\d+\] shut down completed")
_PARTITION: Final = re.compile(
    r"\[Broker id=(?P<node>\d+)\] (?P<role>Leader|Follower) (?P<part>\S+) .*?"
    r"starts at leader epoch (?P<epoch>\d+)(?:.*Current leader is (?P<leader>-?\d+))?"
)
_QUORUM: Final = re.compile(
    r"\[RaftManager (?:id|nodeId)=(?P<node>\d+)\] Completed transition to "
    r"(?P<role>[A-Za-z]+?)(?:State)?\(.*?\bepoch=(?P<epoch>\d+)"
)
_OF_QUORUM: Final = re.compile(r"\bleader(?:=|Id=(?:OptionalInt\[)?)(?P<leader>\d+)")
#: Of clusters with ZooKeeper.
_ELECTED: Final = re.compile(
    r"\[Controller id=(?P<node>\d+)\].* elected as the controller\. "
    r"Epoch incremented to (?P<epoch>\d+)"
)
_CONTROLLER: Final = "controller"
_NOBODY: Final = -1


class _Told(NamedTuple):
    part: str
    epoch: int
    role: str
    leader: int | None


def state_events(
    node: str, lines: Iterable[tuple[int | None, str]], main: str
) -> Iterator[StateEvent]:
    """Yield the events of a node; ``main`` is the partition by which faults are aimed.

    Lines come with nanoseconds since the run's start.
    """
    incarnation, sequence, epoch = 0, 0, 0
    for time, line in lines:
        known: dict[str, Any] = {}
        if _STARTED in line:
            incarnation, sequence = incarnation + bool(sequence), 0
            known = {"kind": "started"}
        elif _STOPPED.search(line):
            known = {"kind": "stopped"}
        elif (told := _told_by(line)) is not None:
            if told.part == main:
                epoch = told.epoch
                known = {"kind": "role", "role": told.role, "leader": told.leader}
            else:
                names = (PART, PART_EPOCH, PART_ROLE, PART_LEADER)
                known = {"kind": "part", "detail": dict(zip(names, told, strict=True))}
        if known:
            yield StateEvent(
                node=node,
                sequence=sequence,
                incarnation=incarnation,
                epoch=epoch,
                time=time,
                **known,
            )
            sequence += 1


def _told_by(line: str) -> _Told | None:
    """Return who leads what by a line; None where it tells nothing of that."""
    if found := _PARTITION.search(line):
        leads = found["role"] == "Leader"
        leader = int(found["node"] if leads else found["leader"] or _NOBODY)
        return _Told(found["part"], int(found["epoch"]), found["role"].lower(), _known(leader))
    if found := _QUORUM.search(line):
        # It goes on with the state before.
        state, _, _ = line[found.start() :].partition(") from ")
        named = _OF_QUORUM.search(state)
        leads = found["role"] == "Leader"
        leader = int(found["node"]) if leads else int(named["leader"]) if named else _NOBODY
        return _Told(METADATA, int(found["epoch"]), found["role"].lower(), _known(leader))
    if found := _ELECTED.search(line):
        return _Told(_CONTROLLER, int(found["epoch"]), "leader", int(found["node"]))
    return None


def _known(leader: int) -> int | None:
    return None if leader == _NOBODY else leader
