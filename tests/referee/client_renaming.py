"""Allowed differences between two equal clusters' answers to clients, by declared rules.

Pure. Everything else must be equal: errors and their words, levels, epochs and leaders of
partitions, orders, types and sources of configs. Must never rename what an administrator would act
on. ``tests.referee.renaming`` does the same for what Java's tools print.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from tests.referee.client_answers import TopicId

_NUMBER: Final = "NUMBER"
_ID: Final = "ID"
_NO_IDS: Final = ("A" * 22, "00000000-0000-0000-0000-000000000000")
_HEX: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UUID: Final = re.compile(rf"UUID\('({_HEX.pattern})'\)")
#: Names of the answering broker in confluent-kafka's lists.
_ANSWERERS: Final = ("orig_broker_id", "orig_broker_name")

#: Any controller may be active, and says which one it is.
_LOCAL: Final = re.compile(r"(?<=Local controller )[123](?= (?:only supports|does not))")

#: APIs that a real controller serves and ours does not, by Kafka's numbers, so that brokers do not
#: offer them to clients: what grants and revokes (30, 31), delegation tokens (38 to 40), quotas
#: (49), SCRAM (51), and dynamic voters (80, 81).
NOT_SERVED: Final = frozenset({"30", "31", "38", "39", "40", "49", "51", "80", "81"})

#: Values that depend on the machine and the hour, wherever told: bytes of its disk, times, and by
#: which change the features came to be as they are.
_NUMBERS: Final = frozenset(
    {"total_bytes", "usable_bytes", "last_timestamp", "finalized_epoch", "finalized_features_epoch"}
)
#: How a partition begins that something is told of.
_PARTITION: Final = '{"topic":'
#: Of a replica of the metadata log.
_PROGRESS: Final = ("log_end_offset", "last_fetch_timestamp", "last_caught_up_timestamp")
#: Of the quorum's partition: which controller is active, in which epoch, how far its log goes.
_QUORUM: Final = ("leader_epoch", "high_watermark")


class ClientRenaming:
    """Of what clients of one cluster answer, one answer after the other."""

    def __init__(self, literals: Mapping[str, str]) -> None:
        """``literals``: what this cluster alone is called, and how it is written instead."""
        self._literals = literals
        self._topics: dict[str, str] = {}

    def __call__(self, answer: Any) -> Any:
        """The plain answer as clients of every cluster would have it."""
        if isinstance(answer, TopicId):
            return self._topic(answer)
        if isinstance(answer, str):
            return self._text(answer)
        if isinstance(answer, list):
            return [self(each) for each in answer]
        if not isinstance(answer, dict):
            return answer
        for rename in (*_RULES, self._address):
            answer = rename(answer)
        return {self._text(name): self(each) for name, each in answer.items()}

    def _topic(self, topic_id: str) -> str:
        """The same name for the same id, numbered as they appear."""
        if topic_id in _NO_IDS:
            return topic_id
        return self._topics.setdefault(topic_id, f"TOPIC-{len(self._topics) + 1}")

    def _text(self, text: str) -> str:
        for literal, instead in self._literals.items():
            text = text.replace(literal, instead)
        text = _LOCAL.sub(_NUMBER, text)
        return _UUID.sub(lambda found: self._topic(found[1]), text)

    def _address(self, node: dict[str, Any]) -> dict[str, Any]:
        """A broker's: the engine chose the port at which clients of this machine find it."""
        address = f"{node.get('host')}:{node.get('port')}"
        if address not in self._literals:
            return node
        return {**node, "host": self._literals[address], "port": _NUMBER}


def _numbers(answer: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _NUMBER if name in _NUMBERS and _is_told(each) else each
        for name, each in answer.items()
    }


def _is_told(number: object) -> bool:
    """Whether it is one, and not that there is none."""
    return isinstance(number, int) and number >= 0


def _offered(answer: dict[str, Any]) -> dict[str, Any]:
    """A broker offers what its controllers serve too."""
    versions = answer.get("api_versions")
    if not isinstance(versions, dict):
        return answer
    served = {key: each for key, each in versions.items() if key not in NOT_SERVED}
    return {**answer, "api_versions": served}


def _directories(answer: dict[str, Any]) -> dict[str, Any]:
    """A broker lists what is in a directory in the order of a table of its own."""
    if "log_dir" not in answer:
        return answer
    topics = [
        {**topic, "partitions": sorted(topic["partitions"], key=lambda it: it["partition_index"])}
        for topic in sorted(answer["topics"], key=lambda it: it["name"])
    ]
    return {**answer, "topics": topics}


def _elected(answer: dict[str, Any]) -> dict[str, Any]:
    """A controller that looks through all partitions does so by the ids of their topics."""
    if not answer or not all(name.startswith(_PARTITION) for name in answer):
        return answer
    return dict(sorted(answer.items()))


def _marked(answer: dict[str, Any]) -> dict[str, Any]:
    """One of kafka-python's answers has a topic's id as text."""
    told = answer.get("topic_id")
    if isinstance(told, str) and _HEX.fullmatch(told):
        return {**answer, "topic_id": TopicId(told)}
    return answer


def _answerer(answer: dict[str, Any]) -> dict[str, Any]:
    """A client tells whom it asked, which is its own affair."""
    return {name: each for name, each in answer.items() if name not in _ANSWERERS}


def _quorum(answer: dict[str, Any]) -> dict[str, Any]:
    """Any voter may lead, and observers come as they were heard."""
    if "current_voters" not in answer:
        return answer
    voters = sorted(answer["current_voters"], key=_replica_id)
    observers = sorted(answer["observers"], key=_replica_id)
    is_led = answer["leader_id"] in [_replica_id(each) for each in voters]
    return {
        **answer,
        **{name: _NUMBER for name in _QUORUM if _is_told(answer[name])},
        "leader_id": "VOTER" if is_led else answer["leader_id"],
        "current_voters": [_replica(each) for each in voters],
        "observers": [_replica(each) for each in observers],
    }


def _replica_id(replica: Mapping[str, Any]) -> int:
    return int(replica["replica_id"])


def _replica(replica: Mapping[str, Any]) -> dict[str, Any]:
    # A leader may not know yet how far an observer is, nor since when.
    told = {**replica, **dict.fromkeys(_PROGRESS, _NUMBER)}
    directory = replica["replica_directory_id"]
    return {**told, "replica_directory_id": directory if directory in _NO_IDS else _ID}


def _controller(answer: dict[str, Any]) -> dict[str, Any]:
    """Brokers call any of them the controller, since clients cannot ask the one that is."""
    told, nodes = _controllers(answer)
    is_one = told is not None and told in nodes
    return {
        name: "BROKER" if is_one and name in ("controller", "controller_id") else each
        for name, each in answer.items()
    }


def _controllers(answer: dict[str, Any]) -> tuple[Any, list[Any]]:
    """Rename the controller and the serving brokers, as either library has them."""
    if "controller" in answer:
        return answer["controller"], list(answer.get("nodes", ()))
    return answer.get("controller_id"), [
        each["broker_id"] if isinstance(each, dict) else int(each)
        for each in answer.get("brokers", ())
    ]


_RULES: Final = (
    _numbers,
    _quorum,
    _controller,
    _offered,
    _directories,
    _elected,
    _answerer,
    _marked,
)
