"""Shapes asked of a link, beside the measurements of probes along it.

``python -m bench.link_quality --probes 400`` starts two pods that do nothing, gives the link from
one to the other each quality in turn, measures it by datagrams and takes it away again. Delay and
jitter are of the round trip, whose way back is left alone; the jitter asked for is half the width
of the band, the one measured the width of its inner nine tenths. Prints a table, and one JSON
object on the last line. Judges nothing: a machine without processor time to spare delays by more
than was asked.
"""

import argparse
import fcntl
import json
import sys
import tempfile
from pathlib import Path

import msgspec

from splitbrain.contracts.arms import LinkQuality, Shape
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import DeploymentSpec, NodeSpec, Runtime
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.registry import runtime as make_runtime

_NAMES = (NodeName("n1"), NodeName("n2"))
_LINK = Link(*_NAMES)
_TIMEOUT_S = 60.0

#: Requests, in words, and their shapes.
_SHAPES: tuple[tuple[str, Shape], ...] = (
    ("nothing", Shape()),
    ("delay 50 ms", Shape(delay_us=50_000)),
    ("delay 200 ms", Shape(delay_us=200_000)),
    ("delay 500 ms", Shape(delay_us=500_000)),
    ("delay 200 ms, jitter 50 ms", Shape(delay_us=200_000, jitter_us=50_000)),
    ("loss 10 %", Shape(loss=0.1)),
    ("loss 30 %", Shape(loss=0.3)),
    ("duplicate 50 %", Shape(duplicate=0.5)),
    ("rate 64 kbit/s", Shape(rate_kbit=64)),
    ("rate 512 kbit/s", Shape(rate_kbit=512)),
)


class Measured(msgspec.Struct, frozen=True):
    """One quality, asked for and measured."""

    asked: str
    means: str
    sent: int
    delay_ms: float | None
    jitter_ms: float | None
    loss_percent: float
    duplicate_percent: float
    kbit: float | None


def measure(runtime: Runtime, asked: str, shape: Shape, probes: int) -> Measured:
    """Shape the link, measure it, let it be as it was."""
    means = "-" if shape == Shape() else runtime.links.shape([_LINK], shape)
    try:
        seen = runtime.links.measure(_LINK, probes, _TIMEOUT_S)
    finally:
        if shape != Shape():
            runtime.links.unshape([_LINK])
    return _in_figures(asked, means, seen)


def _in_figures(asked: str, means: str, seen: LinkQuality) -> Measured:
    return Measured(
        asked=asked,
        means=means,
        sent=seen.sent,
        delay_ms=seen.median_ms,
        jitter_ms=seen.spread_ms,
        loss_percent=round(100 * (1 - seen.arrived / seen.sent), 1),
        duplicate_percent=round(100 * seen.doubled / seen.sent, 1),
        kbit=seen.kbit,
    )


def main() -> int:
    """Deploy, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m bench.link_quality", description=__doc__)
    parser.add_argument("--probes", type=int, default=400)
    parser.add_argument("--runtime", default="docker")
    options = parser.parse_args()
    runtime = make_runtime(options.runtime)
    runtime.prepare([])
    results: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="splitbrain-links-") as folder:
        run_folder = Path(folder)
        with RunFolder(run_folder).lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                runtime.deploy(_two_idle_nodes(runtime, run_folder))
                print(_row("asked", "delay ms", "jitter", "loss %", "twice %", "kbit/s", "by"))
                for asked, shape in _SHAPES:
                    measured = measure(runtime, asked, shape, options.probes)
                    results.append(measured)
                    print(_row(*_cells(measured)), flush=True)
            finally:
                runtime.teardown()
    print(json.dumps({"probes": options.probes, "links": msgspec.to_builtins(results)}))
    return 0


def _two_idle_nodes(runtime: Runtime, run_folder: Path) -> DeploymentSpec:
    nodes: list[NodeSpec] = []
    for name in _NAMES:
        place = runtime.place(name, RunFolder(run_folder).node(name), {"client": 8000})
        nodes.append(
            NodeSpec(
                name=name,
                image="splitbrain-pod",
                command=("sleep", "3600"),
                environment={},
                ports=place.ports,
                data_path=place.data_path,
            )
        )
    return DeploymentSpec(RunId(f"links-{run_folder.name[-8:]}"), run_folder, tuple(nodes))


def _cells(measured: Measured) -> list[str]:
    delay = "-" if measured.delay_ms is None else f"{measured.delay_ms:.1f}"
    jitter = "-" if measured.jitter_ms is None else f"{measured.jitter_ms:.1f}"
    kbit = "-" if measured.kbit is None else f"{measured.kbit:.0f}"
    shares = (f"{measured.loss_percent:.1f}", f"{measured.duplicate_percent:.1f}")
    return [measured.asked, delay, jitter, *shares, kbit, measured.means]


def _row(asked: str, *figures: str) -> str:
    *numbers, means = figures
    return f"{asked:<28}" + "".join(f"{number:>10}" for number in numbers) + f"  {means}"


if __name__ == "__main__":
    sys.exit(main())
