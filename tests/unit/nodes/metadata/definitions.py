"""Kafka's record definitions as a table of their own, independent of the structs under test.

``tests/corpus/metadata/definitions.txt`` was made from the definitions in Kafka 4.3.1's jar; the
entities that ``kio`` reads and writes, the Hypothesis strategies and the inputs of the vectors are
all made from it.
"""

import re
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from hypothesis import strategies as st

from splitbrain.nodes.metadata import records
from splitbrain.nodes.metadata.records import MetadataRecord
from tests.unit.nodes.wire.declared_messages import messages

FOLDER = Path("tests/corpus/metadata")
NESTED = {
    "BrokerEndpoint": records.AdvertisedListener,
    "ControllerEndpoint": records.AdvertisedListener,
    "BrokerFeature": records.SupportedFeature,
    "ControllerFeature": records.SupportedFeature,
    "EntityData": records.QuotaEntity,
}


class FieldDefinition(NamedTuple):
    kafka_name: str
    type: str
    is_array: bool
    since: int
    is_nullable: bool
    tag: int | None
    default: str | None
    fields: tuple["FieldDefinition", ...]

    @property
    def name(self) -> str:
        return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", self.kafka_name).lower()

    def there(self, version: int) -> bool:
        return version >= self.since


class Definition(NamedTuple):
    api_key: int
    name: str
    version_max: int
    fields: tuple[FieldDefinition, ...]

    def __repr__(self) -> str:
        return self.name

    @property
    def struct(self) -> type[MetadataRecord]:
        return getattr(records, self.name)


def read_definitions() -> tuple[Definition, ...]:
    found: list[Definition] = []
    lines = (FOLDER / "definitions.txt").read_text().splitlines()
    heads = [number for number, line in enumerate(lines) if not line.startswith(" ")]
    for head, end in pairwise([*heads, len(lines)]):
        api_key, name, versions = lines[head].split()
        fields = _fields(lines[head + 1 : end], 4)
        found.append(Definition(int(api_key), name, int(versions.split("-")[-1]), fields))
    return tuple(found)


def _fields(lines: list[str], indent: int) -> tuple[FieldDefinition, ...]:
    starts = [number for number, line in enumerate(lines) if line[indent] != " "]
    found: list[FieldDefinition] = []
    for start, end in pairwise([*starts, len(lines)]):
        name, of_type, *rest = lines[start].split()
        said = dict(word.split("=") for word in rest if "=" in word)
        since = next((int(word[:-1]) for word in rest if word.endswith("+")), 0)
        tag = int(said["tag"]) if "tag" in said else None
        found.append(
            FieldDefinition(
                name,
                of_type.removeprefix("[]"),
                of_type.startswith("[]"),
                since,
                "nullable" in rest,
                tag,
                said.get("default"),
                _fields(lines[start + 1 : end], indent + 4),
            )
        )
    return tuple(found)


DEFINITIONS = read_definitions()
VERSIONS = [
    (definition, version)
    for definition in DEFINITIONS
    for version in range(definition.version_max + 1)
]


def records_of(definition: Definition, version: int) -> st.SearchStrategy[MetadataRecord]:
    """Any record that this version can say."""
    return messages(definition.struct, version)


def any_records() -> st.SearchStrategy[MetadataRecord]:
    """Any record in the highest version."""
    return st.one_of([records_of(each, each.version_max) for each in DEFINITIONS])
