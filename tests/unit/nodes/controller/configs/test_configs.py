"""Configs: the tables, changes and effective values are those of Kafka."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.controller.basis.decisions import Refusal
from splitbrain.nodes.controller.basis.settings import ControllerSettings
from splitbrain.nodes.controller.configs import config_changes
from splitbrain.nodes.controller.configs.broker_configs import BROKER_LISTS, DYNAMIC_BROKER_CONFIGS
from splitbrain.nodes.controller.configs.client_metrics_configs import CLIENT_METRICS_CONFIGS
from splitbrain.nodes.controller.configs.config_changes import (
    ConfigChange,
    ConfigOperation,
    changed_configs,
    replaced_configs,
)
from splitbrain.nodes.controller.configs.config_types import ConfigType, config_text, parse_config
from splitbrain.nodes.controller.configs.config_validation import ResourceType
from splitbrain.nodes.controller.configs.effective_configs import (
    ALL_BROKERS,
    ConfigSource,
    effective_config,
    effective_configs,
)
from splitbrain.nodes.controller.configs.group_configs import GROUP_CONFIGS
from splitbrain.nodes.controller.configs.topic_configs import TOPIC_CONFIGS
from splitbrain.nodes.metadata.image import ConfigResource, MetadataImage
from splitbrain.nodes.metadata.records import ConfigRecord, MetadataRecord
from splitbrain.nodes.wire.errors import ApiError
from tests.unit.nodes.controller.clusters import broker, image_with, topic

FOLDER = Path("tests/corpus/controller")
TOPIC_ID = "ab" * 16
SOURCES = {
    "DYNAMIC_TOPIC_CONFIG": ConfigSource.TOPIC,
    "DYNAMIC_DEFAULT_BROKER_CONFIG": ConfigSource.ALL_BROKERS,
    "DEFAULT_CONFIG": ConfigSource.DEFAULT,
}


def lines_of(name: str) -> list[list[str]]:
    return [line.split("\t") for line in (FOLDER / name).read_text().split("\n") if line]


def pairs_of(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (pair.partition("=") for pair in split(text))}


def split(text: str) -> list[str]:
    return text.split("|") if text else []


def image_of(kind: int, name: str, before: str) -> MetadataImage:
    some: list[MetadataRecord] = [broker(1), *topic("t", TOPIC_ID, (1,))]
    some += [ConfigRecord(kind, name, *pair) for pair in pairs_of(before).items()]
    return image_with(some)


def asked_of(image: MetadataImage, line: list[str]) -> list[str]:
    """Code, message and records of what a line of the corpus asks for."""
    how, kind, name, _, wanted, *_ = line
    resource = (int(kind), name)
    try:
        if how == "replace":
            written = replaced_configs(image, resource, pairs_of(wanted))
        else:
            changes = {
                config: ConfigChange(ConfigOperation[operation], value)
                for config, operation, value in (each.split(":", 2) for each in split(wanted))
            }
            written = changed_configs(image, resource, changes)
    except Refusal as refusal:
        return [str(int(refusal.code)), str(refusal.message), ""]
    assert all((each.resource_type, each.resource_name) == resource for each in written)
    entries = sorted(
        each.name + ("" if each.value is None else f"={each.value}") for each in written
    )
    return ["0", "null", "|".join(entries)]


def test_the_tables_are_those_of_kafka() -> None:
    tables = {"topic": TOPIC_CONFIGS, "group": GROUP_CONFIGS, "metrics": CLIENT_METRICS_CONFIGS}
    ours = [
        [
            kind,
            name,
            each.type.name,
            "null" if each.default is None else f"={each.default}",
            str(each.is_internal).lower(),
        ]
        for kind, table in tables.items()
        for name, each in table.items()
    ]
    theirs = [line for line in lines_of("config_definitions.tsv") if line[0] in tables]
    assert ours == theirs


def test_configs_of_brokers_have_the_types_of_kafka() -> None:
    lines = lines_of("config_definitions.tsv")
    types = {line[1]: ConfigType[line[2]] for line in lines if line[0] == "broker"}
    dynamic = {line[1]: types.get(line[1], ConfigType.UNKNOWN) for line in lines if len(line) == 2}
    assert dict(DYNAMIC_BROKER_CONFIGS) == dynamic
    lists = {
        line[1]: line[3].removeprefix("=") if line[3] != "null" else None
        for line in lines
        if line[0] == "broker" and line[2] == "LIST"
    }
    assert dict(BROKER_LISTS) == lists


def test_changes_come_out_as_in_kafka() -> None:
    lines = lines_of("config_changes.tsv")
    wrong = [
        (line, found)
        for line in lines
        if (found := asked_of(image_of(int(line[1]), line[2], line[3]), line)) != line[5:]
    ]
    assert not wrong
    codes = {line[5] for line in lines}
    assert codes == {"0", "3", "17", "40", "42"}


def test_effective_configs_are_those_of_kafka() -> None:
    for cluster, own, expected in lines_of("effective_configs.tsv"):
        image = image_of(*ALL_BROKERS, cluster)
        found = effective_configs(image, ControllerSettings(), pairs_of(own))
        theirs = {
            name: (None if value == "null" else value, SOURCES[source])
            for name, source, value in (each.split("=", 2) for each in split(expected))
        }
        assert found == theirs
        assert list(found) == sorted(found)


def test_what_the_controller_was_started_with_comes_before_the_default() -> None:
    image = image_with([])
    settings = ControllerSettings(min_insync_replicas=2)
    found = effective_config(image, settings, {}, "min.insync.replicas")
    assert found == ("2", ConfigSource.STATIC)


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (4, "2", ApiError.BROKER_ID_NOT_REGISTERED, "No node with id 2 found."),
        (4, "1_0", ApiError.INVALID_REQUEST, "Unable to parse broker name as a base 10 number."),
        (8, "1", ApiError.INVALID_REQUEST, "Unknown resource type 8"),
    ],
)
def test_configs_of_what_is_not_there_are_refused(
    kind: int, name: str, code: ApiError, message: str
) -> None:
    change = ConfigChange(ConfigOperation.SET, "1")
    with pytest.raises(Refusal) as refused:
        changed_configs(image_with([broker(1)]), (kind, name), {"log.retention.ms": change})
    assert (refused.value.code, refused.value.message) == (code, message)


def test_a_value_that_is_too_long_is_refused() -> None:
    image = image_with([broker(1)])
    fits, too_long = (
        {"metrics": ConfigChange(ConfigOperation.SET, "x" * length)} for length in (32_767, 32_768)
    )
    resource = (ResourceType.CLIENT_METRICS, "s")
    assert len(changed_configs(image, resource, fits)) == 1
    with pytest.raises(Refusal) as refused:
        changed_configs(image, resource, too_long)
    assert refused.value.code is ApiError.INVALID_CONFIG
    assert refused.value.message == (
        "The configuration value cannot be added because it exceeds the maximum value size of "
        "32767 bytes."
    )


def test_appending_nothing_is_refused() -> None:
    change = {"cleanup.policy": ConfigChange(ConfigOperation.APPEND, None)}
    with pytest.raises(Refusal) as refused:
        changed_configs(image_of(2, "t", ""), (2, "t"), change)
    assert refused.value.code is ApiError.INVALID_REQUEST


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=0, max_value=1))
def test_a_double_is_written_as_it_is_read(value: float) -> None:
    definition = TOPIC_CONFIGS["min.cleanable.dirty.ratio"]
    assert parse_config(definition, config_text(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.00025, "2.5E-4"),
        (1e-5, "1.0E-5"),
        (1.5e10, "1.5E10"),
        (-3e-7, "-3.0E-7"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (True, "true"),
        (("a", "b"), "a,b"),
        (7, "7"),
    ],
)
def test_values_are_written_as_java_does(value: float | str | tuple[str, ...], text: str) -> None:
    assert config_text(value) == text


def test_a_forgotten_bound_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    weaker = msgspec.structs.replace(TOPIC_CONFIGS["segment.bytes"], check=None)
    monkeypatch.setattr(
        "splitbrain.nodes.controller.configs.topic_configs.TOPIC_CONFIGS",
        {**TOPIC_CONFIGS, "segment.bytes": weaker},
    )
    with pytest.raises(AssertionError):
        test_changes_come_out_as_in_kafka()


def test_a_broker_that_was_not_told_again_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def only_what_differs(
        resource: ConfigResource, wanted: Mapping[str, str | None], before: Mapping[str, str]
    ) -> dict[str, str | None]:
        return {name: value for name, value in wanted.items() if value != before.get(name)}

    monkeypatch.setattr(config_changes, "_written", only_what_differs)
    with pytest.raises(AssertionError):
        test_changes_come_out_as_in_kafka()
