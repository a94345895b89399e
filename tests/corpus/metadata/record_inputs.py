"""Prints what ``RecordVectors.java`` turns into bytes: each record type's each version, drawn."""

import base64
import json
import random
import sys
from collections.abc import Iterator
from typing import Any

from tests.unit.nodes.metadata.definitions import VERSIONS, FieldDefinition

SEED = 20261122
EACH = 6
LIMITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
LETTERS = "abcz09-_.äß漢🙂"


def drawn(field: FieldDefinition, version: int, source: random.Random) -> Any:
    """A value as Kafka's JSON converters read it."""
    if field.is_nullable and source.random() < 0.4:
        return None
    if field.is_array:
        return [drawn_single(field, version, source) for _ in range(source.randrange(4))]
    return drawn_single(field, version, source)


def drawn_single(field: FieldDefinition, version: int, source: random.Random) -> Any:
    """One item, or the value itself."""
    if field.fields:
        return drawn_fields(field.fields, version, source)
    if field.type in LIMITS:
        half = 1 << LIMITS[field.type] - 1
        return source.choice([0, 1, -1, half - 1, -half, source.randrange(-half, half)])
    choices: dict[str, Any] = {
        "bool": lambda: source.random() < 0.5,
        "uint16": lambda: source.choice([0, 9092, 65535]),
        "float64": lambda: source.choice([0.0, -1.5, source.random() * 1e12]),
        "string": lambda: "".join(source.choices(LETTERS, k=source.randrange(9))),
        "bytes": lambda: base64.b64encode(source.randbytes(source.randrange(9))).decode(),
        "uuid": lambda: base64.urlsafe_b64encode(source.randbytes(16)).decode().rstrip("="),
    }
    return choices[field.type]()


def drawn_fields(
    fields: tuple[FieldDefinition, ...], version: int, source: random.Random
) -> dict[str, Any]:
    """A structure; the converters want every field that the version has."""
    return {
        field.kafka_name[0].lower() + field.kafka_name[1:]: drawn(field, version, source)
        for field in fields
        if field.there(version) and (field.tag is None or source.random() < 0.7)
    }


def record_inputs() -> Iterator[str]:
    """One line for each record; always the same ones."""
    source = random.Random(SEED)
    for definition, version in VERSIONS:
        for _ in range(EACH if definition.fields else 1):
            data = drawn_fields(definition.fields, version, source)
            yield json.dumps({"type": definition.api_key, "version": version, "data": data})


if __name__ == "__main__":
    sys.stdout.write("".join(line + "\n" for line in record_inputs()))
