"""A fuzz of every port of real nodes: nodes stay up, their memory flat, and others are served.

``python -m bench.port_fuzz [--frames 20000] [--seed N] [--store FOLDER]`` starts three voters with
registers, and three controllers with a broker, as processes on loopback, and sends so many frames
to their ports: well formed ones without sense, damaged ones, bytes; in a row, cut, dripping, with
answers unread, on more connections than a port has. Beside, honest clients ask each of these ports.
Exit code 1, with the seed and the command that repeats it, if a node ended, if an honest client was
not answered in time, if the memory of a node, or its log, grew by more than is allowed, or if a
quorum whose leader is killed after all that has no new one.

Source: issue 18, section 1.
"""

import argparse
import asyncio
import itertools
import logging
import random
import resource
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from bench.fuzz_clusters import Cluster
from bench.fuzz_connections import (
    FiguresClient,
    Honest,
    KafkaClient,
    Nuisance,
    OwnClient,
)
from bench.fuzz_frames import FrameMaker
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.system import CLIENT_PORT, PEER_PORT
from splitbrain.nodes.transport.client_protocol import ClientRequest, encode_frame
from splitbrain.nodes.wire.calls import encode_call
from splitbrain.nodes.wire.families.brokers import AllocateProducerIdsRequest
from splitbrain.systems.kraft.deployment import METRICS_PORT

#: Frames that a gate can afford; a night takes a million.
FRAMES_COUNT: Final = 20_000
#: Frames of one connection.
_IN_A_ROW_MAX: Final = 120
#: Connections that send at a time to one port.
_AT_A_TIME: Final = 4
#: More than a port has.
_CROWD_COUNT: Final = 1_200
#: Of a value that is asked for again and again and never read: far more than a node may hold.
_LARGE_BYTES: Final = 500_000
_LARGE_COUNT: Final = 1_000
#: The frames come in rounds; each has once what would fill a node that has no limits.
_ROUND_FRAMES_COUNT: Final = 100_000
_ROUNDS_COUNT_MIN: Final = 2
#: Growth of a node's memory allowed in all of it, as the limits of its ports allow, and from
#: the end of the first round to the end of the last.
_PEAK_MIB_MAX: Final = 160
_GROWTH_MIB_MAX: Final = 32
#: Bytes of a node's log that all frames together may cause, for each second.
_LOG_BYTES_PER_S_MAX: Final = 64 * 1024
#: Of all frames, at least so many are answered and read by whoever sent them.
_ANSWERED_SHARE_MIN: Final = 0.02
_MIB: Final = 1 << 20


class Target(NamedTuple):
    """One port of one node, what is sent to it, and who asks it honestly."""

    cluster: Cluster
    node: NodeName
    port: str
    #: Of a frame maker: draws a frame for this port.
    draw: Callable[[FrameMaker], bytes]
    #: Whether more connections are made to it than it has places.
    is_crowded: bool = False

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.cluster.name} {self.node} {self.port}"

    @property
    def where(self) -> tuple[str, int]:
        """Host and number."""
        address = self.cluster.runtime.endpoint(self.node, self.port)
        return address.host, address.port

    def honest(self) -> Honest:
        """Somebody to ask at this port."""
        if self.port == METRICS_PORT:
            return Honest(self.name, FiguresClient(*self.where))
        if self.port == PEER_PORT:
            return Honest(self.name, KafkaClient(*self.where))
        return Honest(self.name, OwnClient(*self.where, _questions(self.cluster.name)))

    def nuisance(self, seed: str) -> Nuisance:
        """Connections to this port that draw from this seed."""
        stream = random.Random(seed)
        maker = FrameMaker(stream, self.cluster.world(self.node))

        def draw_row(count: int) -> list[bytes]:
            maker.begin_row()
            return [self.draw(maker) for _ in range(count)]

        return Nuisance(*self.where, stream, draw_row)


class Measured(msgspec.Struct):
    """One node over the course of the fuzz."""

    #: Before the first frame, after the first round and after the last.
    fresh_mib: float = 0
    first_mib: float = 0
    last_mib: float = 0
    peak_mib: float = 0
    log_bytes: int = 0


class Fuzz:
    """One run of the fuzz."""

    def __init__(self, seed: int, frames_count: int, clusters: Sequence[Cluster]) -> None:
        self._seed = seed
        self._frames_count = frames_count
        self._nodes = [(cluster, node) for cluster in clusters for node in cluster.runtime.nodes()]
        self._targets = [target for cluster in clusters for target in _targets(cluster)]
        self._sent_count = 0
        self._answers_count = 0
        self._measured: dict[str, Measured] = {}
        #: Those of which it is known already that they ended.
        self.problems: list[str] = []

    async def run(self) -> None:
        """Send all frames; ``problems`` has what came of it."""
        done, honest = asyncio.Event(), [target.honest() for target in self._targets]
        asking = [asyncio.create_task(each.run(done)) for each in honest]
        began = time.monotonic()
        try:
            rounds_count = max(_ROUNDS_COUNT_MIN, self._frames_count // _ROUND_FRAMES_COUNT)
            await self._measure("fresh")
            for number in range(rounds_count):
                await self._send(self._frames_count // rounds_count)
                unread = await self._unread()
                await self._crowd()
                for nuisance in unread:
                    await nuisance.close()
                await self._measure("first" if number == 0 else "last")
                if self.problems or any(each.problem is not None for each in honest):
                    break
        finally:
            done.set()
            await asyncio.gather(*asking)
        self.problems += [each.problem for each in honest if each.problem is not None]
        self._judge(time.monotonic() - began)
        for each in honest:
            print(f"{each.name}: {each.answered_count} answers, slowest {each.slowest_s:.2f} s")

    async def _send(self, count: int) -> None:
        share = count // len(self._targets) + 1
        await asyncio.gather(*(self._bother(target, share) for target in self._targets))
        self._sent_count += share * len(self._targets)

    async def _bother(self, target: Target, count: int) -> None:
        seed = f"{self._seed} {target.name} {self._sent_count}"
        stream = random.Random(seed)
        nuisances = [target.nuisance(f"{seed} {number}") for number in range(_AT_A_TIME)]
        left = count
        while left > 0:
            rows = [stream.randint(1, _IN_A_ROW_MAX) for _ in nuisances]
            await asyncio.gather(
                *(each.bother(min(row, left)) for each, row in zip(nuisances, rows, strict=True))
            )
            left -= sum(rows)
        for nuisance in nuisances:
            self._answers_count += nuisance.answers_count
            await nuisance.close()

    async def _unread(self) -> list[Nuisance]:
        """Ask for what is large, or for much, and read nothing of it."""
        nuisances: list[Nuisance] = []
        for target in self._targets:
            nuisance = target.nuisance("unread")
            nuisances.append(nuisance)
            if target.port == CLIENT_PORT:
                # Of nodes without registers this is refused, which is an answer as well.
                large = ClientRequest(1, "write", "large", "x" * _LARGE_BYTES)
                writer = OwnClient(*target.where, iter([large]))
                await writer.ask()
                await writer.close()
                asked = encode_frame(ClientRequest(2, "read", "large"))
                await nuisance.unread(asked, _LARGE_COUNT)
                await nuisance.unread(encode_frame(ClientRequest(3, "status")), 100_000)
            elif target.port == PEER_PORT:
                call = encode_call(AllocateProducerIdsRequest(broker_id=77), 0, 1, "fuzz")
                await nuisance.unread(call, 10_000)
            else:
                await nuisance.unread(b"GET /metrics HTTP/1.1\r\n\r\n", 1_000)
        return nuisances

    async def _crowd(self) -> None:
        """Hold half a frame on more connections than a port has; newcomers are served as well."""
        crowded = [target for target in self._targets if target.is_crowded]
        nuisances = [target.nuisance("crowd") for target in crowded]
        count = _crowd_count(len(crowded))
        await asyncio.gather(*(nuisance.crowd(count) for nuisance in nuisances))
        newcomers, done = [target.honest() for target in crowded], asyncio.Event()
        asking = [asyncio.create_task(newcomer.run(done)) for newcomer in newcomers]
        for newcomer in newcomers:
            await newcomer.told.wait()
        await self._measure()
        done.set()
        await asyncio.gather(*asking)
        for nuisance in nuisances:
            await nuisance.close()
        self.problems += [
            f"beside {count} connections {newcomer.problem}"
            for newcomer in newcomers
            if newcomer.problem is not None
        ]

    async def _measure(self, when: Literal["fresh", "first", "last"] | None = None) -> None:
        for cluster, node in self._nodes:
            name = f"{cluster.name} {node}"
            sample = await asyncio.to_thread(cluster.runtime.sample, node)
            if sample is None:
                code = await asyncio.to_thread(cluster.runtime.exit_code, node)
                if not any(problem.startswith(name) for problem in self.problems):
                    last = cluster.runtime.log_tail(node, 12)
                    self.problems.append(f"{name} has ended with exit code {code}:\n{last}")
                continue
            log = sum(
                each.stat().st_size for each in (cluster.folder / "nodes" / node).glob("*.log")
            )
            measured = self._measured.setdefault(name, Measured())
            memory_mib, measured.log_bytes = sample.memory_bytes / _MIB, log
            measured.peak_mib = max(measured.peak_mib, memory_mib)
            if when is not None:
                setattr(measured, f"{when}_mib", memory_mib)

    def _judge(self, duration_s: float) -> None:
        for name, measured in self._measured.items():
            course = (
                f"{measured.fresh_mib:.0f} MiB before, {measured.first_mib:.0f} after the first"
                f" round, {measured.peak_mib:.0f} at most, {measured.last_mib:.0f} at the end"
            )
            print(f"{name}: {course}")
            if measured.peak_mib - measured.fresh_mib > _PEAK_MIB_MAX:
                self.problems.append(f"{name} was filled: {course}")
            if measured.last_mib - measured.first_mib > _GROWTH_MIB_MAX:
                self.problems.append(f"{name} goes on growing: {course}")
            if measured.log_bytes > _LOG_BYTES_PER_S_MAX * (duration_s + 10):
                self.problems.append(f"{name} has {measured.log_bytes} bytes of log")
        print(
            f"{self._sent_count} frames, {self._answers_count} answers read,"
            f" {duration_s:.0f} s, seed {self._seed}"
        )
        if self._answers_count < self._sent_count * _ANSWERED_SHARE_MIN:
            self.problems.append("hardly any frame was answered: the fuzz asks nothing")


def _questions(cluster: str) -> Iterator[ClientRequest]:
    """Of an honest client: a write and a read of registers, else how the node is."""
    for number in itertools.count(1):
        if cluster != "registers" or number % 3 == 0:
            yield ClientRequest(number, "status")
        elif number % 3 == 1:
            yield ClientRequest(number, "write", "honest", number, f"honest-{number}")
        else:
            yield ClientRequest(number, "read", "honest")


def _targets(cluster: Cluster) -> Iterator[Target]:
    """Each kind of port once at the leader, the client's at another one too; a broker's, if any."""
    leader = cluster.leader()
    voters = {voter.node_id for voter in cluster.world(leader).voters}
    others = [node for node in cluster.runtime.nodes() if node != leader]
    is_first = cluster.name == "registers"
    yield Target(cluster, leader, PEER_PORT, FrameMaker.quorum_port, is_crowded=is_first)
    yield Target(cluster, others[0], PEER_PORT, FrameMaker.quorum_port)
    yield Target(cluster, leader, CLIENT_PORT, FrameMaker.client_port, is_crowded=is_first)
    yield Target(cluster, leader, METRICS_PORT, FrameMaker.metrics_port, is_crowded=is_first)
    for node in others:
        if cluster.world(node).node_id not in voters:
            yield Target(cluster, node, PEER_PORT, FrameMaker.broker_port, is_crowded=True)
            yield Target(cluster, node, CLIENT_PORT, FrameMaker.client_port)


def _crowd_count(ports_count: int) -> int:
    """More connections than a port has, as far as this process may open so many files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    spare = _CROWD_COUNT * ports_count if hard == resource.RLIM_INFINITY else hard - 300
    return min(_CROWD_COUNT, spare // ports_count)


def fuzz(seed: int, frames_count: int, folder: Path) -> list[str]:
    """Run it; what went wrong."""
    controllers = Experiment(
        system="kraft", nodes=3, state_machine="metadata", settings={"brokers": "1"}
    )
    clusters = [
        Cluster("registers", folder / "registers", Experiment(system="kraft", nodes=3)),
        Cluster("metadata", folder / "metadata", controllers),
    ]
    try:
        for cluster in clusters:
            cluster.start()
        run = Fuzz(seed, frames_count, clusters)
        asyncio.run(run.run())
        if run.problems:
            return run.problems
        return [problem for cluster in clusters if (problem := cluster.elects()) is not None]
    finally:
        for cluster in clusters:
            cluster.runtime.teardown()


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the command; its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=FRAMES_COUNT)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", type=Path, help="keep the nodes' folders here")
    parsed = parser.parse_args(arguments)
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # a dropped connection is no news here
    if parsed.store is None:
        with tempfile.TemporaryDirectory() as folder:
            problems = fuzz(parsed.seed, parsed.frames, Path(folder))
    else:
        problems = fuzz(parsed.seed, parsed.frames, parsed.store)
    for problem in problems:
        print(f"PROBLEM {problem}")
    if problems:
        again = ["python", "-m", "bench.port_fuzz", "--seed", str(parsed.seed)]
        print(f"again: {shlex.join([*again, '--frames', str(parsed.frames)])}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
