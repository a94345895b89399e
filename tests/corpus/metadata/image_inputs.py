"""Prints what ``ImageVectors.java`` turns into images: courses of records, one a line, in hex."""

import sys
from collections.abc import Iterator

from splitbrain.nodes.metadata.serde import encode_record
from tests.unit.nodes.metadata.courses import course

SEEDS = range(12)
RECORDS = 60


def image_inputs() -> Iterator[str]:
    """One line for each seed; always the same ones."""
    for seed in SEEDS:
        written, _ = course(seed, RECORDS)
        yield " ".join(encode_record(record).hex() for record in written)


if __name__ == "__main__":
    sys.stdout.write("".join(line + "\n" for line in image_inputs()))
