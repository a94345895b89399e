"""The renaming hides what is declared, and nothing beside it."""

import pytest

from tests.referee.renaming import Renaming

_ID = "ojyMOdqian1SGgx-i_tz-w"
_OTHER = "eA_v46JojIAhZwEXmEdHGg"
_NONE = "A" * 22

_STATUS = """\
ClusterId:              {cluster}
LeaderId:               {leader}
HighWatermark:          {mark}
MaxFollowerLagTimeMs:   {lag}
CurrentVoters:          [{{"id": 1, "endpoints": ["CONTROLLER://n1:9193"]}}]
CurrentObservers:       [{observers}]
"""
_SEEN = f'{{"id": 11, "directoryId": "{_ID}"}}'
_SEEN_TOO = f'{{"id": 12, "directoryId": "{_OTHER}"}}'


def _status(**changes: object) -> str:
    usual = {
        "cluster": _ID,
        "leader": 1,
        "mark": 28,
        "lag": 0,
        "observers": f"{_SEEN}, {_SEEN_TOO}",
    }
    return _STATUS.format(**{**usual, **changes})


def _rows(*rows: tuple[object, ...]) -> str:
    lines = ["\t".join(str(column).ljust(8) for column in row) + "\t" for row in rows]
    return "\n".join(["NodeId\tDirectoryId           \tLogEndOffset\tStatus  \t", *lines, ""])


_REPLICAS = (
    (1, _NONE, 31, 0, 1795332927229, 1795332927229, "Leader"),
    (2, _NONE, 31, 0, 1795332926873, 1795332926873, "Follower"),
    (11, _ID, 31, 0, 1795332926868, 1795332926868, "Observer"),
)


def test_a_cluster_is_called_by_what_it_alone_is_called() -> None:
    one, other = Renaming({_ID: "CLUSTER"}), Renaming({_OTHER: "CLUSTER"})
    assert one(f"Cluster ID: {_ID}") == other(f"Cluster ID: {_OTHER}")
    assert one(f"Cluster ID: {_ID}") != other(f"Cluster ID: {_ID}")


def test_offsets_lags_and_the_order_of_observers_are_hidden() -> None:
    other = _status(leader=3, mark=1044, lag=-1, observers=f"{_SEEN_TOO}, {_SEEN}")
    assert Renaming({})(_status()) == Renaming({})(other)


def test_times_and_which_voter_leads_are_hidden() -> None:
    other = (
        (1, _NONE, 1056, 12, 9, 8, "Follower"),
        (2, _NONE, 1068, 0, 9, 9, "Leader"),
        (11, _OTHER, 999, 69, 7, -1, "Observer"),
    )
    assert Renaming({})(_rows(*_REPLICAS)) == Renaming({})(_rows(*other))


@pytest.mark.parametrize(
    "other",
    [
        _status(observers=_SEEN),
        _status(observers=f"{_SEEN}, {_SEEN}"),
        _status(leader="none"),
        _status().replace("n1:9193", "n1:9194"),
        _status().replace('"id": 1,', f'"id": 1, "directoryId": "{_OTHER}",'),
    ],
)
def test_everything_else_of_a_status_is_seen(other: str) -> None:
    assert Renaming({})(_status()) != Renaming({})(other)


@pytest.mark.parametrize(
    ("row", "instead"),
    [
        (0, (1, _ID, 31, 0, 1795332927229, 1795332927229, "Leader")),
        (1, (2, _NONE, 31, 0, 1795332927229, 1795332927229, "Leader")),
        (1, (3, _NONE, 31, 0, 1795332927229, 1795332927229, "Follower")),
        (1, (2, _NONE, 31, 0, 1795332927229, 1795332927229, "Observer")),
        (2, (11, _NONE, 31, 0, 1795332926868, 1795332926868, "Observer")),
    ],
)
def test_everything_else_of_a_replica_is_seen(row: int, instead: tuple[object, ...]) -> None:
    changed = [*_REPLICAS[:row], instead, *_REPLICAS[row + 1 :]]
    assert Renaming({})(_rows(*_REPLICAS)) != Renaming({})(_rows(*changed))


def test_a_topic_keeps_its_name_as_long_as_it_has_its_id() -> None:
    def told(*ids: str) -> list[str]:
        renaming = Renaming({})
        return [renaming(f"Topic: a\tTopicId: {topic_id}\tPartitionCount: 2") for topic_id in ids]

    assert told(_ID, _ID) == told(_OTHER, _OTHER)
    assert told(_ID, _OTHER) != told(_OTHER, _OTHER)
    assert told(_ID) != told(_NONE)
    assert told(_ID)[0] != Renaming({})(f"Topic: a\tTopicId: {_ID}\tPartitionCount: 3")


def test_where_and_when_a_tool_failed_is_hidden_but_not_of_what() -> None:
    said = "07:35:44,845 ERROR TopicCommand: TopicExistsException: Topic 'a' already exists.\n"
    frames = "\tat org.apache.kafka.tools.A.b(A.java:1)\n\t... 2 more\n"
    search = "07:38:23,519 WARN NetworkClient: Connection to node -2 could not be established.\n"
    renamed = Renaming({})(search + said + frames)
    assert renamed == Renaming({})(said.replace("44,845", "50,001"))
    assert renamed != Renaming({})(said.replace("'a'", "'b'"))
