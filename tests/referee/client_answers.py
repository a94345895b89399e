"""Answers of administrators' clients in Python as plain data, alike for both libraries. Pure.

Must never fall back on how an object prints itself: an object of an unknown kind is an error, since
it could hide what differs.
"""

# The library's own names, which it does not list as exported.
# pyright: reportPrivateImportUsage=false

import json
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final
from uuid import UUID

from confluent_kafka import KafkaError, KafkaException, TopicPartition, Uuid
from confluent_kafka.admin import ConfigResource
from confluent_kafka.cimpl import NewPartitions, NewTopic
from kafka.errors import KafkaError as PythonKafkaError

#: Longer than any client's own patience.
_PATIENCE_S: Final = 60.0
_OF_C: Final[Mapping[type, tuple[str, ...]]] = {
    TopicPartition: ("topic", "partition", "offset", "error"),
    NewTopic: ("topic", "num_partitions", "replication_factor", "replica_assignment", "config"),
    NewPartitions: ("topic", "new_total_count", "replica_assignment"),
}
#: Why a method is not asked, of either client.
ASKS_NOBODY: Final = "asks nobody"
COORDINATED: Final = "brokers answer it alone, as coordinators of groups"
LEADERS_OWN: Final = "a partition's leader answers it alone"
NOT_OURS: Final = "our controllers serve none, and brokers tell clients so"
#: Calls that change nothing.
_LOOKS: Final = ("describe_", "list_", "get_", "api_versions", "cluster_id")


class TopicId(str):
    """An id of a topic, however a client writes it."""

    __slots__ = ()


@dataclass(frozen=True)
class Call:
    """A method of a client and what it is given."""

    method: str
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    #: Part of a real cluster's answer, so that a question which no client understands is
    #: not taken for agreement; of a call that is not refused it may be empty.
    tells: str = ""
    is_refused: bool = False

    @property
    def changes(self) -> bool:
        """Whether others may see something new afterwards."""
        return not self.is_refused and not self.method.startswith(_LOOKS)

    def ask(self, client: Any) -> Any:
        """Return the client's answer or exception as plain data."""
        try:
            return plain(getattr(client, self.method)(*self.arguments, **self.options))
        except (KafkaException, PythonKafkaError) as error:
            return plain(error)

    def __str__(self) -> str:
        told = json.dumps([plain(each) for each in self.arguments] + [plain(self.options)])
        return f"{self.method} {told}"


def refusable(method: str, *arguments: Any, told: str = "", **options: Any) -> Call:
    """A call that is refused where ``told`` says how, and granted where it says nothing."""
    return Call(method, arguments, options, told, is_refused=bool(told))


def plain(value: Any) -> Any:
    """As JSON could write it; ids of topics are marked as such.

    Raises TypeError: nobody has said how.
    """
    match value:
        case Enum():
            return value.name
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return value.decode()
        case UUID():
            return TopicId(value)
        case Uuid():
            return TopicId(str(value))
        case Future():
            return _settled(value)
        case KafkaError():
            return {"error": value.name(), "said": value.str()}
        case KafkaException():
            return {"raised": plain(value.args[0])}
        case BaseException():
            return {"raised": type(value).__name__, "said": str(value)}
        case type():
            return value.__name__
        case Mapping():
            return {_key(name): plain(each) for name, each in value.items()}
        case _:
            return _of_object(value)


def _settled(future: "Future[Any]") -> Any:
    """Its result."""
    error = future.exception(_PATIENCE_S)
    return plain(future.result() if error is None else error)


def _of_object(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(plain(each) for each in value)
    if type(value) in _OF_C:
        return {name: plain(getattr(value, name)) for name in _OF_C[type(value)]}
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if hasattr(value, "__dict__"):
        return plain(vars(value))
    if hasattr(value, "__slots__"):
        return {name: plain(getattr(value, name)) for name in value.__slots__}
    raise TypeError(f"nobody has said how to write {type(value)}")


def _key(name: Any) -> str:
    if isinstance(name, ConfigResource):
        return f"{name.restype.name} {name.name}"
    told = plain(name)
    return told if isinstance(told, str) else json.dumps(told)
