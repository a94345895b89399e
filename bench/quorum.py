"""Committed writes a second of a three-node cluster on loopback, and what an idle node weighs.

Run as ``python -m bench.quorum [--seconds S]``. Three processes, real disks, one client process;
the last line is one JSON object. Take ratios: the figures are those of the machine and its load.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.operations import Operation
from splitbrain.contracts.runtime import NodeSample
from splitbrain.contracts.system import Route
from splitbrain.runtimes.local.runtime import LocalRuntime
from splitbrain.systems.kraft.adapter import KraftSystem

CLIENT_COUNTS = (1, 10, 100)
KINDS = ("write", "read")
_READY_PATIENCE_S = 20.0
_MEBIBYTE = 1024 * 1024


class Measurement(msgspec.Struct, frozen=True):
    """One load."""

    kind: str
    clients: int
    operations_per_second: float
    #: Milliseconds.
    median_ms: float
    p99_ms: float
    #: Processor time of all nodes for one operation, microseconds.
    node_cpu_us: float


async def load(
    system: KraftSystem, cluster: LocalRuntime, kind: str, clients: int, seconds: float
) -> Measurement:
    """Let clients work for a while, each with one operation at a time."""
    latencies: list[float] = []
    end = time.monotonic() + seconds

    async def client(number: int) -> None:
        worker = system.open_client(cluster, Route("leader", NodeName("n1")))
        count = 0
        while (start := time.monotonic()) < end:
            value = count if kind == "write" else None
            completion = await worker.invoke(Operation(kind, f"r{number}", value), 10.0)
            if completion.type != "ok":
                raise SystemExit(f"operation failed: {completion}")
            latencies.append(time.monotonic() - start)
            count += 1
        await worker.close()

    cpu_before = sum(sampled(cluster, node).cpu_seconds_total for node in cluster.nodes())
    start = time.monotonic()
    await asyncio.gather(*(client(number) for number in range(clients)))
    elapsed = time.monotonic() - start
    cpu = sum(sampled(cluster, node).cpu_seconds_total for node in cluster.nodes()) - cpu_before
    latencies.sort()
    return Measurement(
        kind=kind,
        clients=clients,
        operations_per_second=round(len(latencies) / elapsed, 1),
        median_ms=round(latencies[len(latencies) // 2] * 1_000, 2),
        p99_ms=round(latencies[len(latencies) * 99 // 100] * 1_000, 2),
        node_cpu_us=round(cpu / len(latencies) * 1_000_000, 1),
    )


def sampled(cluster: LocalRuntime, node: NodeName) -> NodeSample:
    """Resources that a running node uses."""
    sample = cluster.sample(node)
    assert sample is not None, f"{node} does not run"
    return sample


def await_ready(system: KraftSystem, cluster: LocalRuntime) -> None:
    """Wait for a leader that can commit."""
    deadline = time.monotonic() + _READY_PATIENCE_S
    while True:
        try:
            system.ready(cluster)
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each load")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        system = KraftSystem()
        cluster = LocalRuntime("processes")
        spec = system.deployment(
            RunId("bench"), Path(folder), Experiment(system="kraft", nodes=3), cluster.place
        )
        start = time.monotonic()
        cluster.deploy(spec)
        try:
            await_ready(system, cluster)
            ready_s = round(time.monotonic() - start, 2)
            idle = [sampled(cluster, node).memory_bytes / _MEBIBYTE for node in cluster.nodes()]
            idle_mib = round(max(idle), 1)
            print(f"ready after {ready_s} s, idle node {idle_mib} MiB")
            print("kind   clients       op/s  p50 ms  p99 ms  node CPU us/op")
            results: list[Measurement] = []
            for kind in KINDS:
                for clients in CLIENT_COUNTS:
                    result = asyncio.run(load(system, cluster, kind, clients, seconds))
                    results.append(result)
                    print(
                        f"{kind:6} {clients:7} {result.operations_per_second:10.0f} "
                        f"{result.median_ms:7.2f} {result.p99_ms:7.2f} {result.node_cpu_us:15.0f}"
                    )
        finally:
            cluster.teardown()
    summary = {
        "bench": "quorum",
        "ready_s": ready_s,
        "idle_mib": idle_mib,
        "loads": [msgspec.to_builtins(result) for result in results],
    }
    print(json.dumps(summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
