"""Timelines as a simulated quorum would leave them, made from a few figures; nothing is simulated.

Three nodes: n1 leads, is cut off, n3 takes over, n2 crashes and comes back, then a promise is
broken. Followers fetch all the time, clients ask, disks flush. Times in microseconds.
"""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from splitbrain.history.timeline_records import (
    TimelineDisk,
    TimelineFault,
    TimelineLife,
    TimelineLog,
    TimelineMessage,
    TimelineRecord,
    TimelineState,
    TimelineViolation,
)

NODES = ("n1", "n2", "n3")
CLIENTS = ("c1", "c2", "c3", "c4", "c5")
MS = 1_000
#: The cut of n1, then the crash of n2.
CUT_MS = (6_000, 9_000)
CRASH_MS = (12_000, 14_000)
ELECTED_MS = 7_250


class _Quorum:
    def __init__(self, seed: int, events: int) -> None:
        self.random = Random(seed)
        self.events = events
        self.records: list[TimelineRecord] = []
        self.offset = 0

    def write(self) -> list[TimelineRecord]:
        self._lives_and_states()
        at_us = 400 * MS
        while len(self.records) < self.events - 1:
            at_us += 700 + int(self.random.random() * 5_800)
            at_ms = at_us // MS
            # Nobody leads between the loss of the old leader's majority and the election.
            if self.random.random() < 0.25:
                self._client(at_us, at_ms)
            else:
                self._fetch(at_us, at_ms)
        end = max(record.time for record in self.records) + 20 * MS
        self.records.append(
            TimelineViolation(
                time=end - 300 * MS,
                name="INV-02",
                node="n1",
                detail="n1 lost offset 118 of epoch 4, which n3 had committed",
            )
        )
        self.records.sort(key=lambda record: record.time)
        return self.records

    def leader(self, at_ms: int) -> str:
        return "n1" if at_ms < ELECTED_MS else "n3"

    def reachable(self, node: str, at_ms: int) -> bool:
        cut = node == "n1" and CUT_MS[0] <= at_ms < CUT_MS[1]
        return not cut and not self.is_down(node, at_ms)

    @staticmethod
    def is_down(node: str, at_ms: int) -> bool:
        return node == "n2" and CRASH_MS[0] <= at_ms < CRASH_MS[1]

    def message(self, at: int, node: str, peer: str, name: str, **more: Any) -> int:
        """One message; returns when it arrived, or would have."""
        arrived = at + 300 + int(self.random.random() * 2_500)
        at_ms = at // MS
        # A client reaches every node that runs; the cut lies between the nodes.
        between = node in NODES and peer in NODES
        whole = self.reachable(node, at_ms) and self.reachable(peer, at_ms)
        fate = "arrived" if whole or not between else "lost"
        if self.is_down(peer, at_ms):
            fate = "refused"
        self.records.append(
            TimelineMessage(
                time=at,
                node=node,
                peer=peer,
                name=name,
                arrived=arrived if fate == "arrived" else None,
                fate=fate,
                **more,
            )
        )
        return arrived

    def _fetch(self, at: int, at_ms: int) -> None:
        leader = self.leader(at_ms)
        others = [node for node in NODES if node != leader]
        follower = others[int(self.random.random() * len(others))]
        if self.is_down(follower, at_ms):
            return
        detail = f"epoch {4 if leader == 'n3' else 3}, from offset {self.offset}"
        got = self.message(at, follower, leader, "Fetch", detail=detail)
        if not self.reachable(follower, at_ms) or not self.reachable(leader, at_ms):
            return
        empty = self.random.random() < 0.8
        records = "no records" if empty else f"1 record at offset {self.offset}"
        answered = self.message(
            got + 150, leader, follower, "FetchAnswer", detail=records, empty=empty
        )
        if not empty:
            self.records.append(
                TimelineDisk(time=answered, node=follower, name="flush", until=answered + 4 * MS)
            )
            self.records.append(
                TimelineLog(
                    time=answered + 4 * MS,
                    node=follower,
                    event="high-watermark",
                    offset=self.offset,
                )
            )

    def _client(self, at: int, at_ms: int) -> None:
        client = CLIENTS[int(self.random.random() * len(CLIENTS))]
        leader = self.leader(at_ms)
        got = self.message(at, client, leader, "Write", detail=f"r{self.offset % 4} = {at_ms}")
        if not self.reachable(leader, at_ms):
            return
        self.offset += 1
        self.records.append(TimelineLog(time=got, node=leader, event="append", offset=self.offset))
        self.records.append(
            TimelineDisk(time=got, node=leader, name="flush", until=got + 3 * MS, detail="1 batch")
        )
        self.message(got + 9 * MS, leader, client, "WriteAnswer", detail="ok")

    def _lives_and_states(self) -> None:
        add = self.records.append
        for node in NODES:
            add(TimelineLife(time=0, node=node, event="started"))
            add(TimelineState(time=10, node=node, role="unattached", epoch=2))
        self._election(200, "n1", 3)
        add(
            TimelineFault(
                time=CUT_MS[0] * MS,
                name="partition",
                nodes=("n1",),
                until=CUT_MS[1] * MS,
                detail="symbolic leader",
            )
        )
        add(TimelineState(time=7_100 * MS, node="n1", role="resigned", epoch=3, leader="n1"))
        self._election(7_180, "n3", 4, absent=("n1",))
        add(TimelineState(time=9_050 * MS, node="n1", role="follower", epoch=4, leader="n3"))
        add(
            TimelineFault(time=CRASH_MS[0] * MS, name="kill", nodes=("n2",), until=CRASH_MS[1] * MS)
        )
        add(TimelineLife(time=CRASH_MS[0] * MS, node="n2", event="crashed"))
        add(TimelineDisk(time=CRASH_MS[0] * MS - 900, node="n2", name="fsync failed"))
        add(TimelineLife(time=CRASH_MS[1] * MS, node="n2", event="started"))
        add(TimelineState(time=CRASH_MS[1] * MS + 20 * MS, node="n2", role="unattached", epoch=4))
        add(
            TimelineState(
                time=CRASH_MS[1] * MS + 40 * MS, node="n2", role="follower", epoch=4, leader="n3"
            )
        )

    def _election(self, at_ms: int, winner: str, epoch: int, absent: tuple[str, ...] = ()) -> None:
        at = at_ms * MS
        self.records.append(
            TimelineState(time=at, node=winner, role="prospective", epoch=epoch - 1)
        )
        others = [node for node in NODES if node != winner]
        for peer in others:
            self.message(at + 50, winner, peer, "Vote", detail=f"epoch {epoch}, pre-vote")
        self.records.append(
            TimelineState(time=at + 9_000, node=winner, role="candidate", epoch=epoch)
        )
        for peer in others:
            got = self.message(at + 9_050, winner, peer, "Vote", detail=f"epoch {epoch}")
            if peer not in absent:
                self.message(got + 4_000, peer, winner, "VoteAnswer", detail="granted")
        led = at + 22_000
        self.records.append(
            TimelineState(time=led, node=winner, role="leader", epoch=epoch, leader=winner)
        )
        for peer in others:
            got = self.message(led + 50, winner, peer, "BeginQuorumEpoch", detail=f"epoch {epoch}")
            if peer in absent:
                continue
            self.records.append(
                TimelineState(time=got, node=peer, role="follower", epoch=epoch, leader=winner)
            )
            self.message(got + 60, peer, winner, "BeginQuorumEpochAnswer", detail="accepted")


def quorum_timeline(events: int = 10_000, seed: int = 1) -> list[TimelineRecord]:
    """About so many records in the order of time; the last but a few is a violation."""
    return _Quorum(seed, events).write()


def write_timeline(path: Path, records: Sequence[TimelineRecord]) -> None:
    """As ``timeline.jsonl``."""
    path.write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
