"""How long until a cluster is up, and what a node costs when it has nothing to do.

``python -m bench.startup --repeats 5 --nodes 3`` deploys the KRaft quorum again and again and
measures, per repeat, the deployment (containers run), the time until a leader serves, the removal,
and the nodes' memory once they are idle. Prints a table, and one JSON object on the last line;
exits with 1 when a limit of issue 3 is broken (up within 5 s, under 80 MiB idle, image under
250 MB).
"""

import argparse
import fcntl
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import msgspec
from docker import DockerClient
from tenacity import Retrying, stop_after_delay, wait_fixed

from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import RunId
from splitbrain.contracts.runtime import Runtime
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.docker.engine import connect
from splitbrain.runtimes.docker.images import Images
from splitbrain.runtimes.registry import runtime as make_runtime
from splitbrain.systems.registry import system as make_system

UP_S_MAX = 5.0
IDLE_MIB_MAX = 80.0
IMAGE_MB_MAX = 250.0

_PATIENCE_S = 60.0
_IDLE_SETTLE_S = 2.0


class Startup(msgspec.Struct, frozen=True):
    """One repeat."""

    #: Until every container runs.
    deploy_s: float
    #: Until a leader serves, counted from the start of the deployment.
    up_s: float
    teardown_s: float
    #: The hungriest node's memory, page cache apart, after a moment without load.
    idle_mib: float


def measure(repeat: int, nodes: int, runtime_name: str) -> Startup:
    """Deploy one cluster, wait until it serves, let it idle, remove it."""
    adapter = make_system("kraft")
    runtime = make_runtime(runtime_name)
    runtime.prepare(adapter.images())
    with tempfile.TemporaryDirectory(prefix="splitbrain-startup-") as folder:
        run_folder = Path(folder)
        with RunFolder(run_folder).lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            run_id = RunId(f"startup-{run_folder.name[-8:]}-{repeat}")
            spec = adapter.deployment(
                run_id, run_folder, Experiment(system="kraft", nodes=nodes), runtime.place
            )
            began = time.monotonic()
            try:
                runtime.deploy(spec)
                deployed = time.monotonic()
                for attempt in Retrying(
                    stop=stop_after_delay(_PATIENCE_S), wait=wait_fixed(0.02), reraise=True
                ):
                    with attempt:
                        adapter.ready(runtime)
                serving = time.monotonic()
                idle_mib = _idle_mib(runtime)
            finally:
                leaving = time.monotonic()
                runtime.teardown()
            gone = time.monotonic()
    return Startup(deployed - began, serving - began, gone - leaving, idle_mib)


def _idle_mib(runtime: Runtime) -> float:
    time.sleep(_IDLE_SETTLE_S)  # idling is what is measured
    samples = [runtime.sample(node) for node in runtime.nodes()]
    return max(sample.memory_bytes for sample in samples if sample is not None) / 1024**2


def _node_image(client: DockerClient) -> str:
    sources = make_system("kraft").images()
    return Images(client).ensure(sources)[sources[0].name]


def image_megabytes() -> float:
    """Size of the node's image, as the engine counts it."""
    client = connect()
    try:
        attributes: dict[str, int] = client.images.get(_node_image(client)).attrs
        return attributes["Size"] / 1e6
    finally:
        client.close()


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(prog="python -m bench.startup", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--runtime", default="docker")
    options = parser.parse_args()
    print(f"{'repeat':>6} {'deploy s':>9} {'up s':>7} {'teardown s':>11} {'idle MiB':>9}")
    repeats: list[Startup] = []
    for number in range(options.repeats):
        repeat = measure(number, options.nodes, options.runtime)
        repeats.append(repeat)
        print(
            f"{number:>6} {repeat.deploy_s:>9.2f} {repeat.up_s:>7.2f} {repeat.teardown_s:>11.2f} "
            f"{repeat.idle_mib:>9.1f}",
            flush=True,
        )
    figures = {
        "nodes": options.nodes,
        "repeats": options.repeats,
        "up_s_median": round(statistics.median(repeat.up_s for repeat in repeats), 3),
        "up_s_max": round(max(repeat.up_s for repeat in repeats), 3),
        "deploy_s_median": round(statistics.median(repeat.deploy_s for repeat in repeats), 3),
        "teardown_s_median": round(statistics.median(repeat.teardown_s for repeat in repeats), 3),
        "idle_mib_max": round(max(repeat.idle_mib for repeat in repeats), 1),
        "image_mb": round(image_megabytes(), 1),
    }
    kept = (
        figures["up_s_median"] < UP_S_MAX
        and figures["idle_mib_max"] < IDLE_MIB_MAX
        and figures["image_mb"] < IMAGE_MB_MAX
    )
    print(json.dumps({**figures, "within_limits": kept}))
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
