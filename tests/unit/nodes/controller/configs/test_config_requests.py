"""IncrementalAlterConfigs, AlterConfigs, DescribeConfigs: what is asked, answered and written."""

import pytest

from splitbrain.nodes.controller.basis.decisions import Decision
from splitbrain.nodes.controller.basis.settings import ControllerSettings
from splitbrain.nodes.controller.configs.alter_configs import (
    alter_configs,
    alter_configs_incrementally,
)
from splitbrain.nodes.controller.configs.describe_configs import describe_configs
from splitbrain.nodes.metadata import records
from splitbrain.nodes.wire.declared import kind_of
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    ConfigChange,
    ConfigSynonym,
    ConfigValue,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfig,
    DescribedResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ResourceToChange,
    ResourceToDescribe,
    ResourceToSet,
)
from tests.unit.nodes.controller.clusters import applied, broker, image_with, topic, view_of

IMAGE = image_with(
    [
        broker(1),
        *topic("t", "ab" * 16, (1,)),
        *topic("u", "cd" * 16, (1,)),
        records.ConfigRecord(2, "t", "retention.ms", "5"),
        records.ConfigRecord(2, "t", "cleanup.policy", "compact"),
        records.ConfigRecord(4, "", "log.retention.hours", "2"),
        records.ConfigRecord(4, "", "ssl.key.password", "secret"),
        records.ConfigRecord(4, "", "no.such.config", "x"),
        records.ConfigRecord(4, "", "log.segment.bytes", "x"),
        records.ConfigRecord(16, "s", "interval.ms", " 1000"),
        records.ConfigRecord(32, "g", "share.isolation.level", "read_committed"),
    ]
)
Row = tuple[int, str | None, int, str]


def change(kind: int, name: str, *changes: tuple[str, int, str | None]) -> ResourceToChange:
    return ResourceToChange(
        resource_type=kind,
        resource_name=name,
        configs=tuple(
            ConfigChange(name=config, config_operation=operation, value=value)
            for config, operation, value in changes
        ),
    )


def setting(kind: int, name: str, **configs: str | None) -> ResourceToSet:
    return ResourceToSet(
        resource_type=kind,
        resource_name=name,
        configs=tuple(
            ConfigValue(name=config.replace("_", "."), value=value)
            for config, value in configs.items()
        ),
    )


def changed(
    *wanted: ResourceToChange, validate_only: bool = False, records_max: int = 100
) -> tuple[Decision, list[Row]]:
    request = IncrementalAlterConfigsRequest(resources=wanted, validate_only=validate_only)
    settings = ControllerSettings(records_per_batch_max=records_max)
    decision = alter_configs_incrementally(view_of(IMAGE, settings=settings), request, 1)
    assert isinstance(decision.answer, IncrementalAlterConfigsResponse)
    return decision, rows(decision.answer)


def replaced(*wanted: ResourceToSet, validate_only: bool = False) -> tuple[Decision, list[Row]]:
    request = AlterConfigsRequest(resources=wanted, validate_only=validate_only)
    decision = alter_configs(view_of(IMAGE), request, 2)
    assert isinstance(decision.answer, AlterConfigsResponse)
    return decision, rows(decision.answer)


def rows(answer: IncrementalAlterConfigsResponse | AlterConfigsResponse) -> list[Row]:
    return [
        (each.error_code, each.error_message, each.resource_type, each.resource_name)
        for each in answer.responses
    ]


def test_each_resource_is_changed_for_itself() -> None:
    decision, answers = changed(
        change(2, "t", ("retention.ms", 1, None), ("cleanup.policy", 2, "delete")),
        change(2, "u", ("retention.ms", 0, "x"), ("segment.ms", 0, "1")),
        change(4, "1", ("log.retention.ms", 0, "7")),
    )
    assert answers == [
        (0, None, 2, "t"),
        (40, "Invalid value x for configuration retention.ms: Not a number of type LONG", 2, "u"),
        (0, None, 4, "1"),
    ]
    configs = applied(IMAGE, decision).configs
    assert configs[(2, "t")] == {"cleanup.policy": "compact,delete"}
    assert (2, "u") not in configs
    assert configs[(4, "1")] == {"log.retention.ms": "7"}


@pytest.mark.parametrize(
    ("wanted", "code", "message"),
    [
        (change(0, "t"), ApiError.UNSUPPORTED_VERSION, "Unknown resource type 0."),
        (change(7, "t"), ApiError.UNSUPPORTED_VERSION, "Unknown resource type 7."),
        (
            change(8, "1", ("a", 0, "INFO")),
            ApiError.INVALID_REQUEST,
            "Unexpected resource type BROKER_LOGGER.",
        ),
        (
            change(2, "t", ("retention.ms", 9, "1")),
            ApiError.INVALID_REQUEST,
            "Unknown operations type 9",
        ),
    ],
)
def test_what_no_controller_changes_is_refused(
    wanted: ResourceToChange, code: ApiError, message: str
) -> None:
    decision, answers = changed(wanted)
    assert answers == [(code, message, wanted.resource_type, wanted.resource_name)]
    assert decision.records == ()


def test_a_resource_that_is_asked_twice_is_not_changed() -> None:
    first, other = change(2, "t", ("retention.ms", 0, "8")), change(2, "u", ("segment.ms", 0, "1"))
    decision, answers = changed(first, other, first, first)
    assert answers == [(ApiError.INVALID_REQUEST, "Duplicate resource.", 2, "t"), (0, None, 2, "u")]
    assert decision.records == (records.ConfigRecord(2, "u", "segment.ms", "1"),)
    wanted = setting(2, "t", retention_ms="8")
    _, answers = replaced(wanted, wanted)
    assert answers == [(ApiError.INVALID_REQUEST, "Duplicate resource.", 2, "t")]


def test_a_type_that_there_is_not_is_refused_each_time() -> None:
    refused = (ApiError.UNSUPPORTED_VERSION, "Unknown resource type 7.", 7, "t")
    _, answers = changed(change(7, "t"), change(7, "t"))
    assert answers == [refused, refused]
    _, answers = replaced(setting(7, "t"), setting(7, "t"))
    assert answers == [refused, refused]


def test_the_last_change_of_a_config_counts() -> None:
    decision, _ = changed(change(2, "u", ("segment.ms", 0, "1"), ("segment.ms", 0, "2")))
    assert decision.records == (records.ConfigRecord(2, "u", "segment.ms", "2"),)


def test_setting_nothing_removes() -> None:
    decision, _ = changed(change(2, "t", ("retention.ms", 0, None)))
    assert decision.records == (records.ConfigRecord(2, "t", "retention.ms", None),)


def test_too_many_changes_refuse_all() -> None:
    wanted = [change(2, name, ("segment.ms", 0, "1"), ("flush.ms", 0, "1")) for name in "tu"]
    decision, answers = changed(*wanted, records_max=3)
    problem = "Unable to perform excessively large batch operation."
    assert answers == [(ApiError.POLICY_VIOLATION, problem, 2, name) for name in "tu"]
    assert decision.records == ()


def test_validating_writes_nothing() -> None:
    decision, answers = changed(change(2, "t", ("retention.ms", 0, "8")), validate_only=True)
    assert answers == [(0, None, 2, "t")]
    assert decision.records == ()
    decision, answers = replaced(setting(2, "t"), validate_only=True)
    assert answers == [(0, None, 2, "t")]
    assert decision.records == ()


def test_replacing_removes_what_is_not_named() -> None:
    decision, answers = replaced(
        setting(2, "t", retention_ms="6", segment_ms=None), setting(2, "x", retention_ms="1")
    )
    assert answers == [
        (0, None, 2, "t"),
        (ApiError.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'x' does not exist.", 2, "x"),
    ]
    assert applied(IMAGE, decision).configs[(2, "t")] == {"retention.ms": "6"}


def described(
    kind: int, name: str, *keys: str, synonyms: bool = False, version: int = 4
) -> DescribedResource:
    wanted = ResourceToDescribe(
        resource_type=kind, resource_name=name, configuration_keys=keys or None
    )
    request = DescribeConfigsRequest(resources=(wanted,), include_synonyms=synonyms)
    decision = describe_configs(view_of(IMAGE), request, version)
    assert decision.records == ()
    assert isinstance(decision.answer, DescribeConfigsResponse)
    kind_of(DescribeConfigsResponse, flexible=version >= 4).write(decision.answer, version, [])
    (result,) = decision.answer.results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the "
    "message was sent to an incompatible broker. See the broker logs for more details."
)


def config(
    name: str, value: str | None, source: int, kind: int, *synonyms: tuple[str, str | None, int]
) -> DescribedConfig:
    return DescribedConfig(
        name=name,
        value=value,
        read_only=False,
        config_source=source,
        is_sensitive=False,
        synonyms=tuple(
            ConfigSynonym(name=each, value=text, source=number) for each, text, number in synonyms
        ),
        config_type=kind,
        documentation=None,
    )


@pytest.mark.parametrize("version", range(1, 5))
def test_a_topic_is_told_with_defaults(version: int) -> None:
    found = described(2, "t", version=version)
    assert (found.error_code, found.error_message) == (0, "")
    assert len(found.configs) == 33
    shown = {each.name: each for each in found.configs}
    assert shown["retention.ms"] == config("retention.ms", "5", 1, 5)
    assert shown["min.insync.replicas"] == config("min.insync.replicas", "1", 5, 3)


def test_synonyms_are_told_the_nearest_first() -> None:
    found = described(2, "t", "retention.ms", "cleanup.policy", "segment.bytes", synonyms=True)
    assert found.configs == (
        config(
            *("cleanup.policy", "compact", 1, 7),
            ("cleanup.policy", "compact", 1),
            ("log.cleanup.policy", "delete", 5),
        ),
        config(
            *("retention.ms", "5", 1, 5), ("retention.ms", "5", 1), ("log.retention.hours", "2", 3)
        ),
        config(
            *("segment.bytes", "x", 3, 3),
            ("log.segment.bytes", "x", 3),
            ("log.segment.bytes", "1073741824", 5),
        ),
    )


def test_what_is_set_for_all_brokers_is_told_without_secrets() -> None:
    found = described(4, "")
    shown = {each.name: each for each in found.configs}
    assert shown["log.retention.hours"].read_only
    assert shown["log.segment.bytes"] == config("log.segment.bytes", "x", 3, 3)
    for name in ("ssl.key.password", "no.such.config"):
        assert shown[name].value is None
        assert shown[name].is_sensitive


def test_subscriptions_and_groups_are_told_with_defaults() -> None:
    assert described(16, "s").configs == (
        config("interval.ms", "1000", 7, 3),
        config("match", "", 5, 7),
        config("metrics", "", 5, 7),
    )
    shown = {each.name: each for each in described(32, "g").configs}
    assert len(shown) == 17
    assert shown["share.isolation.level"] == config("share.isolation.level", "read_committed", 8, 2)
    assert shown["share.session.timeout.ms"] == config("share.session.timeout.ms", "45000", 5, 3)


def test_groups_are_told_with_what_brokers_call_their_defaults() -> None:
    names = ("share.isolation.level", "share.session.timeout.ms")
    isolation, timeout = described(32, "g", *names, synonyms=True).configs
    assert isolation == config(
        *("share.isolation.level", "read_committed", 8, 2),
        ("share.isolation.level", "read_committed", 8),
        ("share.isolation.level", "read_uncommitted", 5),
    )
    assert timeout == config(
        *("share.session.timeout.ms", "45000", 5, 3), ("group.share.session.timeout.ms", "45000", 5)
    )


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (2, "x", ApiError.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (
            *(2, "", ApiError.INVALID_TOPIC_EXCEPTION),
            "Topic name is invalid: the empty string is not allowed",
        ),
        (
            *(4, "1", ApiError.INVALID_REQUEST),
            "Unexpected broker id, expected empty string, but received 1",
        ),
        (4, "x", ApiError.INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
        (8, "1", ApiError.INVALID_REQUEST, "Levels of loggers are not told here"),
        (16, "", ApiError.INVALID_REQUEST, "Client metrics subscription name must not be empty"),
        (32, "", ApiError.INVALID_REQUEST, "Group name must not be empty"),
        (3, "y", ApiError.INVALID_REQUEST, MALFORMED),
    ],
)
def test_what_cannot_be_told_is_refused(kind: int, name: str, code: ApiError, message: str) -> None:
    found = described(kind, name)
    assert (found.error_code, found.error_message, found.configs) == (code, message, ())
