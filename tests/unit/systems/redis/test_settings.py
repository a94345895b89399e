"""Settings by their own names: defaults, and what is refused."""

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.system import SystemOptions
from splitbrain.systems.redis.adapter import RedisSystem
from splitbrain.systems.redis.settings import settings


def test_the_defaults_keep_data_and_fail_over_within_seconds() -> None:
    found = settings({}, 3)
    assert (found.server["appendonly"], found.server["appendfsync"]) == ("yes", "everysec")
    assert found.server["min-replicas-to-write"] == "0"
    assert found.sentinel["down-after-milliseconds"] == "2000"
    assert (found.replica_reads, found.follow_switches) == (False, True)


@pytest.mark.parametrize(("nodes", "quorum"), [(1, "1"), (2, "2"), (3, "2"), (5, "3")])
def test_the_quorum_is_a_majority_unless_chosen(nodes: int, quorum: str) -> None:
    assert settings({}, nodes).sentinel["quorum"] == quorum
    assert settings({"quorum": "1"}, nodes).sentinel["quorum"] == "1"


def test_each_setting_goes_to_the_part_that_knows_it() -> None:
    found = settings(
        {"min-replicas-to-write": "1", "down-after-milliseconds": "500", "replica-reads": "yes"}, 3
    )
    assert found.server["min-replicas-to-write"] == "1"
    assert found.sentinel["down-after-milliseconds"] == "500"
    assert found.replica_reads
    assert "replica-reads" not in {**found.server, **found.sentinel}


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("appendfsnyc", "always", "appendfsnyc"),
        ("appendfsync", "sometimes", "always, everysec, no"),
        ("appendonly", "true", "yes, no"),
        ("down-after-milliseconds", "0", "between 1 and"),
        ("down-after-milliseconds", "-5", "between 1 and"),
        ("failover-timeout", "2.5", "whole number"),
        ("repl-timeout", "٣", "whole number"),
        ("quorum", "4", "between 1 and 3"),
        ("min-replicas-to-write", "3", "between 0 and 2"),
        ("min-replicas-max-lag", "99999999999", "between 0 and"),
        ("appendonly", "yes\nrename-command SET x", "yes, no"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_would_fit(name: str, value: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        RedisSystem().check_options(SystemOptions(nodes=3, settings={name: value}))


@pytest.mark.parametrize("count", [0, 10])
def test_an_impossible_number_of_nodes_is_refused(count: int) -> None:
    with pytest.raises(UsageError, match=str(count)):
        RedisSystem().check_options(SystemOptions(nodes=count))


def test_there_is_no_planted_bug() -> None:
    assert not RedisSystem().planted_bugs
    with pytest.raises(UsageError, match="no planted bug"):
        RedisSystem().check_options(SystemOptions(nodes=3, bugs=("ack-before-fsync",)))
