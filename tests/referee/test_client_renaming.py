"""The renaming of clients' answers hides what is declared, and nothing beside it."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.referee.client_answers import TopicId
from tests.referee.client_renaming import ClientRenaming

_ID = "9c4f1a5e-3b1e-4a63-9c0d-8d2b7a6c5e01"
_OTHER = "1b0c7f32-77aa-4f0e-8a11-0f3d2c4b5a69"
_NONE = "00000000-0000-0000-0000-000000000000"
_LITERALS = {"ojyMOdqian1SGgx-i_tz-w": "CLUSTER", "127.0.0.1:32801": "CLIENT-OF-11"}

Change = Callable[[Any], None]


def _replica(node_id: int, directory: str, end_offset: int) -> dict[str, Any]:
    return {
        "replica_id": node_id,
        "replica_directory_id": TopicId(directory),
        "log_end_offset": end_offset,
        "last_fetch_timestamp": 1795332927229,
        "last_caught_up_timestamp": 1795332927229,
    }


def _quorum() -> dict[str, Any]:
    return {
        "partition_index": 0,
        "leader_id": 1,
        "leader_epoch": 3,
        "high_watermark": 31,
        "current_voters": [_replica(1, _NONE, 31), _replica(2, _NONE, 30)],
        "observers": [_replica(11, _ID, 31), _replica(12, _OTHER, 31)],
    }


def _cluster() -> dict[str, Any]:
    return {
        "cluster_id": "ojyMOdqian1SGgx-i_tz-w",
        "controller_id": 11,
        "brokers": [
            {"broker_id": 11, "host": "127.0.0.1", "port": 32801, "is_fenced": False},
            {"broker_id": 12, "host": "127.0.0.1", "port": 9092, "is_fenced": True},
        ],
    }


def _topic(topic_id: str = _ID) -> dict[str, Any]:
    partition = {"partition_index": 0, "leader_id": 11, "leader_epoch": 4, "isr_nodes": [11, 12]}
    return {"name": "a", "topic_id": TopicId(topic_id), "partitions": [partition]}


def _features() -> dict[str, Any]:
    return {"metadata.version": {"supported": [7, 30], "finalized": [30, 30], "finalized_epoch": 9}}


def _directories() -> dict[str, Any]:
    partitions = [{"partition_index": number, "partition_size": 7} for number in range(2)]
    topics = [{"name": name, "partitions": partitions} for name in "ab"]
    sizes = {"total_bytes": 9, "usable_bytes": 5}
    return {"log_dir": "/data/log", **sizes, "topics": topics, "is_cordoned": False}


def _versions() -> dict[str, Any]:
    return {"broker_version": [4, 3], "api_versions": {"19": [2, 7], "30": [1, 3], "81": [0, 0]}}


def _listed() -> dict[str, Any]:
    return {"cluster_id": "C", "orig_broker_id": 11, "topics": {"a": {"topic": "a"}}}


def _renamed(answer: Any) -> Any:
    return ClientRenaming(_LITERALS)(answer)


def _each_of(rows: dict[str, tuple[Any, Change]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("answer", "change"), rows.values(), ids=rows)


def _changed(answer: Any, change: Change) -> Any:
    other = copy.deepcopy(answer)
    change(other)
    assert other != answer
    return other


@_each_of(
    {
        "who-leads": (_quorum(), lambda it: it.update(leader_id=2)),
        "epoch": (_quorum(), lambda it: it.update(leader_epoch=8)),
        "mark": (_quorum(), lambda it: it.update(high_watermark=77)),
        "who-was-heard-first": (_quorum(), lambda it: it["observers"].reverse()),
        "who-is-told-first": (_quorum(), lambda it: it["current_voters"].reverse()),
        "progress-and-disk": (
            _quorum(),
            lambda it: it["observers"][0].update(
                log_end_offset=-1, last_fetch_timestamp=-1, replica_directory_id=TopicId(_OTHER)
            ),
        ),
        "any-broker": (_cluster(), lambda it: it.update(controller_id=12)),
        "topic-id": (_topic(), lambda it: it.update(topic_id=TopicId(_OTHER))),
        "features": (_features(), lambda it: it["metadata.version"].update(finalized_epoch=10)),
        "disk": (_directories(), lambda it: it.update(usable_bytes=6)),
        "which-topic-lies-first": (_directories(), lambda it: it["topics"].reverse()),
        "which-partition-lies-first": (
            _directories(),
            lambda it: it["topics"][0].update(partitions=it["topics"][0]["partitions"][::-1]),
        ),
        "no-acls": (_versions(), lambda it: it["api_versions"].pop("30")),
        "no-voters-go": (_versions(), lambda it: it["api_versions"].pop("81")),
        "who-answered": (_listed(), lambda it: it.update(orig_broker_id=12)),
    }
)
def test_what_is_declared_is_hidden(answer: Any, change: Change) -> None:
    assert _renamed(answer) == _renamed(_changed(answer, change))


@_each_of(
    {
        "nobody-leads": (_quorum(), lambda it: it.update(leader_id=-1)),
        "no-voter-leads": (_quorum(), lambda it: it.update(leader_id=11)),
        "no-epoch": (_quorum(), lambda it: it.update(leader_epoch=-1)),
        "no-mark": (_quorum(), lambda it: it.update(high_watermark=-1)),
        "an-observer-less": (_quorum(), lambda it: it["observers"].pop()),
        "a-voter-less": (_quorum(), lambda it: it["current_voters"].pop()),
        "a-voter-by-its-disk": (
            _quorum(),
            lambda it: it["current_voters"][0].update(replica_directory_id=TopicId(_ID)),
        ),
        "an-observer-without-disk": (
            _quorum(),
            lambda it: it["observers"][0].update(replica_directory_id=TopicId(_NONE)),
        ),
        "no-broker": (_cluster(), lambda it: it.update(controller_id=1)),
        "no-controller": (_cluster(), lambda it: it.update(controller_id=-1)),
        "cluster": (_cluster(), lambda it: it.update(cluster_id="other")),
        "port": (_cluster(), lambda it: it["brokers"][0].update(port=1)),
        "fenced": (_cluster(), lambda it: it["brokers"][1].update(is_fenced=False)),
        "no-topic-id": (_topic(), lambda it: it.update(topic_id=TopicId(_NONE))),
        "a-partitions-leader": (_topic(), lambda it: it["partitions"][0].update(leader_id=12)),
        "a-partitions-epoch": (_topic(), lambda it: it["partitions"][0].update(leader_epoch=5)),
        "order-of-replicas": (_topic(), lambda it: it["partitions"][0]["isr_nodes"].reverse()),
        "level": (_features(), lambda it: it["metadata.version"].update(finalized=[29, 30])),
        "no-epoch-of-features": (
            _features(),
            lambda it: it["metadata.version"].update(finalized_epoch=None),
        ),
        "disk-unknown": (_directories(), lambda it: it.update(usable_bytes=-1)),
        "directory": (_directories(), lambda it: it.update(log_dir="/other")),
        "what-is-listed": (_listed(), lambda it: it["topics"]["a"].update(topic="b")),
    }
)
def test_everything_else_is_seen(answer: Any, change: Change) -> None:
    assert _renamed(answer) != _renamed(_changed(answer, change))


def test_a_topic_keeps_its_name_as_long_as_it_has_its_id_also_in_words() -> None:
    def told(*ids: str) -> list[Any]:
        renaming = ClientRenaming({})
        return [
            renaming([_topic(each), {"topic_id": each}, f"topic_id=UUID('{each}')"]) for each in ids
        ]

    assert told(_ID, _ID) == told(_OTHER, _OTHER)
    assert told(_ID, _OTHER) != told(_OTHER, _OTHER)
    assert told(_ID)[0] != ClientRenaming({})(
        [_topic(_ID), {"topic_id": _ID}, f"topic_id=UUID('{_OTHER}')"]
    )
    assert told(_ID)[0] != ClientRenaming({})(
        [_topic(_ID), {"topic_id": _OTHER}, f"topic_id=UUID('{_ID}')"]
    )


def test_words_are_seen_but_for_what_the_cluster_alone_is_called() -> None:
    said = "advertised.listeners=CLIENT://127.0.0.1:32801"
    assert _renamed(said) == "advertised.listeners=CLIENT://CLIENT-OF-11"
    assert _renamed(said.replace("32801", "32802")) != _renamed(said)


def test_which_controller_refuses_is_hidden_and_not_what_it_says() -> None:
    said = "Local controller 3 only supports versions 7-30"
    assert _renamed(said) == _renamed(said.replace("3 only", "1 only"))
    assert _renamed(said) != _renamed("Local controller only supports versions 7-30")
    assert _renamed(said) != _renamed(said.replace("3 only", "4 only"))
    assert _renamed(said) != _renamed("Local controller 3 only supports versions 7-29")
    assert _renamed("Broker 3 only supports") != _renamed("Broker 4 only supports")


def test_the_order_of_elections_of_all_partitions_is_hidden_and_not_what_came_of_them() -> None:
    told = {'{"topic": "a", "partition": 1}': None, '{"topic": "b", "partition": 0}': "refused"}
    other = dict(reversed(told.items()))

    def words(answer: dict[str, Any]) -> str:
        return json.dumps(_renamed(answer))

    assert words(told) == words(other)
    assert words(told) != words(dict.fromkeys(told))
    assert words(told) != words(dict(list(told.items())[:1]))
    configs = {"retention.ms": "1", "flush.ms": "2"}
    assert words(configs) != words(dict(reversed(configs.items()))), "other orders are seen"
