"""Counts elections that nothing called for: an idle cluster, a loaded one, no fault.

A short failover is easily bought with timeouts so short that leaders change for nothing; these
figures stand beside it. Must never inject anything.
"""

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Final

import msgspec

from bench.failover_arithmetic import Spread, spread
from bench.failover_cluster import Cluster
from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.operations import Client, Operation
from splitbrain.contracts.state_event import StateEvent
from splitbrain.contracts.system import Route

#: Clients of the loaded minutes.
CLIENT_COUNT: Final = 10
_OPERATION_TIMEOUT_S: Final = 5.0
_VIEW_TIMEOUT_S: Final = 5.0


class Quiet(msgspec.Struct, frozen=True):
    """A stretch of time without faults."""

    #: ``idle``, or ``loaded`` with its rate.
    load: str
    minutes: float
    #: By how much the epoch grew: every election, and every attempt at one that took an epoch.
    epochs: int
    #: Roles that nodes took meanwhile, by the system's names; empty without state events.
    roles: dict[str, int]
    operations_per_second: float
    #: Writes without an ok.
    failed: int
    latency: Spread | None


async def idle(cluster: Cluster, minutes: float) -> Quiet:
    """Leave the cluster alone."""
    watch = await _Watch.begin(cluster)
    await asyncio.sleep(minutes * 60)  # idling is what is measured
    return await watch.end("idle", [], 0)


async def loaded(cluster: Cluster, minutes: float, rate: float) -> Quiet:
    """Let clients write, all together at this rate a second, or 0 for as fast as they can."""
    watch = await _Watch.begin(cluster)
    load = _Load(cluster, minutes * 60, rate)
    await asyncio.gather(*(load.client(number) for number in range(CLIENT_COUNT)))
    name = f"loaded {rate:g}/s" if rate else "loaded, no limit"
    return await watch.end(name, load.latencies_ms, load.failed_count)


class _Load:
    """Clients that follow the leader, each with one write at a time."""

    def __init__(self, cluster: Cluster, seconds: float, rate: float) -> None:
        self._cluster = cluster
        self._end = time.monotonic() + seconds
        self._interval_s = CLIENT_COUNT / rate if rate else 0.0
        self.latencies_ms: list[float] = []
        self.failed_count = 0

    async def client(self, number: int) -> None:
        """One client, until the time is over."""
        nodes = self._cluster.runtime.nodes()
        route = Route("leader", nodes[number % len(nodes)])
        client: Client | None = None
        count = 0
        while (began := time.monotonic()) < self._end:
            if client is None:
                client = self._cluster.system.open_client(self._cluster.runtime, route)
            write = Operation("write", f"load-{number}", count)
            count += 1
            completion = await client.invoke(write, _OPERATION_TIMEOUT_S)
            if completion.type == "ok":
                self.latencies_ms.append((time.monotonic() - began) * 1_000)
            else:
                self.failed_count += 1
                await client.close()
                client = None
            await asyncio.sleep(max(0.0, began + self._interval_s - time.monotonic()))
        if client is not None:
            await client.close()


class _Watch:
    """Epoch and state events between two moments."""

    def __init__(self, cluster: Cluster, epoch: int) -> None:
        self._cluster = cluster
        self._epoch = epoch
        self._sizes = {f: _size(f) for f in cluster.state_event_files().values()}
        self._began = time.monotonic()

    @classmethod
    async def begin(cls, cluster: Cluster) -> "_Watch":
        return cls(cluster, await asyncio.to_thread(present_epoch, cluster))

    async def end(self, load: str, latencies_ms: list[float], failed_count: int) -> Quiet:
        seconds = time.monotonic() - self._began
        epoch = await asyncio.to_thread(present_epoch, self._cluster)
        roles: Counter[str] = Counter()
        for file, size in self._sizes.items():
            roles.update(roles_taken(file, size))
        return Quiet(
            load=load,
            minutes=round(seconds / 60, 2),
            epochs=epoch - self._epoch,
            roles=dict(sorted(roles.items())),
            operations_per_second=round(len(latencies_ms) / seconds, 1),
            failed=failed_count,
            latency=spread([round(ms, 2) for ms in latencies_ms]) if latencies_ms else None,
        )


def present_epoch(cluster: Cluster) -> int:
    """Return the highest epoch that the nodes tell of.

    Raises:
        HarnessError: none tells one.
    """
    view = cluster.system.leader(cluster.runtime, _VIEW_TIMEOUT_S)
    if view.epoch is None:
        raise HarnessError(
            "ask for the present epoch",
            cluster.system.name,
            "no node answered",
            "The nodes' output says more; try again with fewer things running on this machine",
        )
    return view.epoch


def roles_taken(file: Path, position: int) -> list[str]:
    """Roles in the whole lines of a state-event file from this position on."""
    events = [msgspec.json.decode(line, type=StateEvent) for line in whole_lines(file, position)]
    return [event.role for event in events if event.kind == "role" and event.role is not None]


def whole_lines(file: Path, position: int) -> list[bytes]:
    """Lines of a file that is still written to, from this position on; none if it is not there."""
    try:
        with file.open("rb") as stream:
            stream.seek(position)
            lines = stream.read().rpartition(b"\n")[0].split(b"\n")
    except FileNotFoundError:
        return []
    return [line for line in lines if line]


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
