"""A large image's snapshot, written and loaded by us and by Kafka's own classes: same content.

    python -m bench.metadata_snapshots [--topics 2000] [--partitions 100] [--times 5]

Ours writes the snapshot of a drawn image, durably, and loads it again; then Kafka's classes, in one
JVM, load the same file and write their own of it, as often. Their first time is one of a JVM that
has just started, as a controller's first load is; the others are warm. Prints a table, and one JSON
object on the last line. Needs a JDK (``javac``) and Maven, which the project's own set-up does not.
"""

import argparse
import gc
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench.metadata_image import Stopwatch, load
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.snapshot import decode_image, encode_image, snapshot_id_of
from splitbrain.nodes.metadata.transactions import Provenance
from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.storage.disk import DiskFileSystem
from splitbrain.nodes.storage.layout import log_folder
from splitbrain.nodes.storage.snapshots import read_snapshot, snapshot_path, write_snapshot
from splitbrain.runtimes.docker.jars import fetch_jars

_ROOT = Path(__file__).parents[1]
_HEAP = "-Xmx4g"
_KAFKA = "4.3.1"
_TIMESTAMP_MS = 1_700_000_000_000


class Times(msgspec.Struct):
    """Seconds of each time, in order."""

    load_wall_s: list[float] = []
    load_cpu_s: list[float] = []
    write_wall_s: list[float] = []
    write_cpu_s: list[float] = []


def drawn_image(topics: int, partitions: int, brokers: int) -> MetadataImage:
    """Return an image as of one offset for each of its records."""
    image = load(random.Random(1), topics, partitions, brokers, Stopwatch())
    end = topics * (partitions + 1) + 1
    return msgspec.structs.replace(
        image, provenance=Provenance(Offset(end - 1), Epoch(1), _TIMESTAMP_MS)
    )


def ours(image: MetadataImage, folder: Path, times: int) -> Times:
    """Write and load it; the last snapshot stays."""
    measured = Times()
    filesystem = DiskFileSystem()
    name = snapshot_id_of(image)
    for _ in range(times):
        snapshot_path(folder, name).unlink(missing_ok=True)
        gc.collect()
        # As a node that runs has it: what lives is not looked at again.
        gc.freeze()
        wall, cpu = _timed(lambda: write_snapshot(filesystem, folder, name, encode_image(image)))
        measured.write_wall_s.append(wall)
        measured.write_cpu_s.append(cpu)
        loaded: list[MetadataImage] = []
        wall, cpu = _timed(
            lambda into=loaded: into.append(
                decode_image(name, read_snapshot(filesystem, folder, name))
            )
        )
        measured.load_wall_s.append(wall)
        measured.load_cpu_s.append(cpu)
        gc.unfreeze()
        if loaded[0].topics != image.topics:
            raise RuntimeError("the loaded image is another")
    return measured


def kafkas(image: MetadataImage, folder: Path, times: int, partitions: int) -> Times:
    """Load and write it with Kafka's classes; raises where they see other content."""
    jars = fetch_jars(_ROOT / "docker" / "kafka" / _KAFKA, _ROOT / ".cache")
    classes = folder / "classes"
    classes.mkdir()
    source = _ROOT / "bench" / "java" / "SnapshotTimes.java"
    path = f"{jars}/*:{classes}"
    subprocess.run(["javac", "-cp", path, "-d", str(classes), str(source)], check=True)
    name = snapshot_id_of(image)
    command = ["java", _HEAP, "-cp", path, "SnapshotTimes", str(log_folder(folder))]
    said = subprocess.run(
        [*command, str(name.end_offset), str(name.epoch), str(times)],
        check=False,
        capture_output=True,
        text=True,
    )
    if said.returncode:
        raise RuntimeError(f"Kafka's classes refused: {said.stderr[-2_000:]}")
    measured = Times()
    for line in said.stdout.splitlines():
        load_wall, load_cpu, write_wall, write_cpu, count = line.split()
        if int(count) != partitions:
            raise RuntimeError(f"Kafka's classes see {count} partitions, not {partitions}")
        measured.load_wall_s.append(float(load_wall))
        measured.load_cpu_s.append(float(load_cpu))
        measured.write_wall_s.append(float(write_wall))
        measured.write_cpu_s.append(float(write_cpu))
    return measured


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> int:
    """Measure, print."""
    parser = argparse.ArgumentParser(description="Snapshots, ours beside Kafka's.")
    parser.add_argument("--topics", type=int, default=2_000)
    parser.add_argument("--partitions", type=int, default=100, help="of each topic")
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    if shutil.which("javac") is None:
        print("bench.metadata_snapshots needs a JDK: there is no javac", file=sys.stderr)
        return 3
    count = options.topics * options.partitions
    with tempfile.TemporaryDirectory(prefix="splitbrain-bench-") as name:
        folder = Path(name)
        log_folder(folder).mkdir(parents=True)
        image = drawn_image(options.topics, options.partitions, options.brokers)
        own = ours(image, folder, options.times)
        size_mb = snapshot_path(folder, snapshot_id_of(image)).stat().st_size / 1e6
        kafka = kafkas(image, folder, options.times, count)
    print(f"{count:,} partitions, {size_mb:.1f} MB; seconds, median of the warm times")
    print(f"{'':<16}{'ours':>8}{'Kafka':>8}{'ratio':>8}{'first':>8}{'ratio':>8}")
    ratios: dict[str, float] = {}
    for field in Times.__struct_fields__:
        mine = statistics.median(getattr(own, field))
        first, *warm = getattr(kafka, field)
        theirs = statistics.median(warm or [first])
        ratios[field] = mine / theirs
        print(
            f"{field:<16}{mine:>8.2f}{theirs:>8.2f}{mine / theirs:>8.1f}"
            f"{first:>8.2f}{mine / first:>8.1f}"
        )
    line = {
        "bench": "metadata_snapshots",
        "partitions": count,
        "load_average": round(os.getloadavg()[0], 2),
        "ours": msgspec.to_builtins(own),
        "kafka": msgspec.to_builtins(kafka),
        "ratios": ratios,
    }
    print(json.dumps(line))
    return 0


if __name__ == "__main__":
    sys.exit(main())
