"""Costs of a large cluster's image: memory, time of a delta, time to load and to write it.

``python -m bench.metadata_image --topics 10000 --partitions 100`` builds the image of a million
partitions (three replicas each, drawn over 100 brokers of one directory, epochs up to 1,000) from
encoded records, applies deltas of 1,000 changes, scattered over all topics and within ten of them,
and writes all records of the image. Also measured: a full collection of garbage, which is the
longest stall that the image can cause, before and after ``gc.freeze``. Prints a table, and one JSON
object on the last line; exits with 1 when a limit of issue 9 is broken (300 MB; 15 ms for a
scattered delta, in the median; both for a million partitions or fewer). Times are those of the
processor, which other programs on the machine do not change much; the longest of the deltas is by
the wall clock too.
"""

import argparse
import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from splitbrain.nodes.metadata.content import image_records
from splitbrain.nodes.metadata.delta import MetadataDelta
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.metadata.records import (
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from splitbrain.nodes.metadata.serde import decode_record, encode_record
from splitbrain.nodes.metadata.transactions import Provenance

IMAGE_MB_MAX = 300.0
DELTA_MS_MAX = 15.0
CHANGES = 1000
REPLICAS = 3
_FEW_TOPICS = 10
_EPOCH_MAX = 1000
_REPEATS = 30


class Stopwatch:
    """Adds up seconds of the processor, by what they went into."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def run(self, name: str, work: Callable[[], object]) -> None:
        """Do the work, and add its time to the name's."""
        start = time.process_time()
        work()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - start


def resident_mb() -> float:
    """Memory of this process that is in RAM, in megabytes of 10^6 bytes."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024 / 1e6


def topic_records(
    source: random.Random, number: int, partitions: int, directories: Sequence[str]
) -> list[MetadataRecord]:
    """Return a topic and its partitions, drawn."""
    topic_id = source.randbytes(16).hex()
    records: list[MetadataRecord] = [TopicRecord(f"topic-{number:05}", topic_id)]
    for partition_id in range(partitions):
        replicas = tuple(source.sample(range(len(directories)), REPLICAS))
        records.append(
            PartitionRecord(
                partition_id=partition_id,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas,
                removing_replicas=(),
                adding_replicas=(),
                leader=replicas[0],
                leader_epoch=source.randrange(_EPOCH_MAX),
                partition_epoch=source.randrange(_EPOCH_MAX),
                directories=tuple(directories[broker] for broker in replicas),
            )
        )
    return records


def load(
    source: random.Random, topics: int, partitions: int, brokers: int, watch: Stopwatch
) -> MetadataImage:
    """Return the image, by way of encoded records, a topic at a time."""
    directories = [source.randbytes(16).hex() for _ in range(brokers)]
    delta = MetadataDelta(MetadataImage())
    delta.replay(FeatureLevelRecord("metadata.version", 30))
    for number in range(topics):
        records = topic_records(source, number, partitions, directories)
        encoded: list[bytes] = []
        decoded: list[MetadataRecord] = []
        watch.run(
            "encode", lambda source=records, into=encoded: into.extend(map(encode_record, source))
        )
        watch.run(
            "decode", lambda source=encoded, into=decoded: into.extend(map(decode_record, source))
        )
        watch.run("replay", lambda source=decoded: [delta.replay(record) for record in source])
    applied: list[MetadataImage] = []
    watch.run("apply", lambda: applied.append(delta.apply(Provenance())))
    return applied[0]


class Deltas(NamedTuple):
    """Milliseconds of some deltas."""

    cpu_median: float
    cpu_max: float
    wall_max: float


def delta_ms(image: MetadataImage, source: random.Random, topic_ids: Sequence[str]) -> Deltas:
    """Apply some deltas of ``CHANGES`` changes in these topics; each starts from ``image``."""
    cpu: list[float] = []
    wall: list[float] = []
    for _ in range(_REPEATS):
        changes: list[MetadataRecord] = []
        for _ in range(CHANGES):
            topic_id = source.choice(topic_ids)
            partition_id = source.randrange(len(image.topics.by_id[topic_id].partitions))
            replicas = image.topics.by_id[topic_id].partitions[partition_id].replicas
            changes.append(
                PartitionChangeRecord(
                    partition_id=partition_id,
                    topic_id=topic_id,
                    isr=replicas[1:],
                    leader=replicas[1],
                )
            )
        wall_start, cpu_start = time.perf_counter(), time.process_time()
        delta = MetadataDelta(image)
        for change in changes:
            delta.replay(change)
        delta.apply(Provenance())
        cpu.append((time.process_time() - cpu_start) * 1e3)
        wall.append((time.perf_counter() - wall_start) * 1e3)
    return Deltas(statistics.median(cpu), max(cpu), max(wall))


def collection_ms() -> float:
    """Milliseconds of a full collection of garbage."""
    start = time.process_time()
    gc.collect()
    return (time.process_time() - start) * 1e3


def measure(topics: int, partitions: int, brokers: int, seed: int) -> dict[str, float]:
    """All figures, by name."""
    source = random.Random(seed)
    watch = Stopwatch()
    gc.collect()
    before_mb = resident_mb()
    image = load(source, topics, partitions, brokers, watch)
    first_collection_ms = collection_ms()
    image_mb = resident_mb() - before_mb
    second_collection_ms = collection_ms()
    topic_ids = list(image.topics.by_id)
    scattered = delta_ms(image, source, topic_ids)
    few = delta_ms(image, source, source.sample(topic_ids, min(_FEW_TOPICS, len(topic_ids))))
    gc.freeze()
    frozen_collection_ms = collection_ms()
    frozen = delta_ms(image, source, topic_ids)
    gc.unfreeze()
    watch.run("write", lambda: sum(len(encode_record(record)) for record in image_records(image)))
    return {
        "partitions": topics * partitions,
        "image_mb": image_mb,
        **{f"scattered_delta_ms_{name}": value for name, value in scattered._asdict().items()},
        **{f"frozen_delta_ms_{name}": value for name, value in frozen._asdict().items()},
        **{f"few_topics_delta_ms_{name}": value for name, value in few._asdict().items()},
        "first_collection_ms": first_collection_ms,
        "collection_ms": second_collection_ms,
        "collection_frozen_ms": frozen_collection_ms,
        **{f"{name}_cpu_s": seconds for name, seconds in watch.seconds.items()},
    }


def main() -> int:
    """Measure and print; 1 when a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=100, help="of each topic")
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if min(options.topics, options.partitions) < 1 or options.brokers < REPLICAS:
        parser.exit(64, f"at least one topic, one partition and {REPLICAS} brokers are needed\n")
    figures = measure(options.topics, options.partitions, options.brokers, options.seed)
    for name, value in figures.items():
        print(f"{name:>34} {value:>12,.1f}")
    kept = (
        figures["image_mb"] < IMAGE_MB_MAX
        and figures["scattered_delta_ms_cpu_median"] < DELTA_MS_MAX
    )
    rounded = {name: round(value, 2) for name, value in figures.items()}
    print(json.dumps({**rounded, "within_limits": kept}))
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
