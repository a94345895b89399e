"""Errors of brokers, by their codes and their names."""

from collections.abc import Mapping
from typing import Any, Final, cast

from kafka.errors import kafka_errors  # pyright: ignore[reportUnknownVariableType]

NO_ERROR: Final = 0
_NOT_LEADER_OR_FOLLOWER: Final = 6
TOPIC_ALREADY_EXISTS: Final = 36
#: A topic is made at one broker where there is ZooKeeper, and by way of any with KRaft.
NOT_CONTROLLER: Final = 41
_ERRORS: Final = cast("Mapping[int, Any]", kafka_errors)


class NotKafkaError(Exception):
    """The answer is none of Kafka's."""


class RefusedError(Exception):
    """A broker answered a request with an error."""

    def __init__(self, code: int) -> None:
        self.code = code
        self.name = error_name(code)
        super().__init__(self.name)


def error_name(code: int) -> str:
    """Return a code's name in kebab-case, as in ``not-enough-replicas``."""
    if code == _NOT_LEADER_OR_FOLLOWER:
        # The library has it by the name that it had before followers were asked, too.
        return "not-leader-or-follower"
    known = _ERRORS.get(code)
    return f"error-{code}" if known is None else known.message.lower().replace("_", "-")


def require_none(code: int) -> None:
    """Raise RefusedError for a code that is an error's."""
    if code != NO_ERROR:
        raise RefusedError(code)
